// SPDX-License-Identifier: Apache-2.0
// A real server with the demo in a directory of its own, and a real browser that is watched: what it asks of whom,
// and what it complains about.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

// How long something is waited for is not what is tested: a busy machine may be many times slower than an idle one.
const kPatience = 150_000;
const kConsoleLines = 40;
const screenshots = process.env.SCREENSHOTS;
mkdirSync(screenshots, { recursive: true });

/** Starts a program; resolves with what `pattern` found in its output. */
async function start(program, parameters, directory, pattern) {
  const child = spawn(program, parameters, { cwd: directory, stdio: ['pipe', 'pipe', 'pipe'] });
  let printed = '';
  let logged = '';
  child.stderr.on('data', (text) => (logged = (logged + text).slice(-20_000)));
  const found = await new Promise((resolve, reject) => {
    child.stdout.on('data', (text) => {
      printed += text;
      const match = pattern.exec(printed);
      if (match) resolve(match);
    });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${program} ended with ${code}: ${printed}${logged}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      child.on('exit', resolve);
      child.stdin.end();
      child.kill('SIGTERM');
    });
  return { found, stop };
}

/** `more` are lines of its configuration. */
export async function startServer(more = '') {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-browser-'));
  const config = 'listen: 127.0.0.1:0\nsystems: [all]\nauth: {login_link: true}\nengine: {pools: {uplink: 4}}\n' + more;
  writeFileSync(join(directory, 'pawl.yaml'), config);
  const pattern = /ready: (\S+)\n.*user (\S+), one-time password (\S+)\n.*once: (\S+)\n/s;
  const { found, stop } = await start(process.env.PAWL, ['serve'], directory, pattern);
  const [, url, user, password, link] = found;
  return {
    url,
    user,
    password,
    link,
    async stop() {
      await stop();
      rmSync(directory, { recursive: true });
    },
  };
}

/** The example that brings a page of its own. */
export async function startHello() {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-hello-'));
  const { found, stop } = await start(process.env.HELLO, ['stay'], directory, /(http:\S+)\n/);
  return {
    page: found[1],
    async stop() {
      await stop();
      rmSync(directory, { recursive: true });
    },
  };
}

export async function startBrowser() {
  const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...quiet],
  });
  const complaints = [];
  const strangers = new Set();
  const pages = new Set();
  return {
    complaints,
    strangers,
    stop: () => browser.close(),
    /** What every open page shows, waits for and has said: for the message of a failed test. */
    describe: () =>
      [...pages]
        .map((page) => `${page.url()}\n  unanswered: ${[...page.unanswered].join(', ') || 'nothing'}\n  console: ${page.said.join('\n    ') || 'nothing'}`)
        .join('\n'),
    /** A browser of somebody's own: nothing is shared with the others. `refusals` are the statuses that the test
        provokes; Chromium writes each of them to its console. */
    async open(url, { refusals = [], ...options } = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
      context.setDefaultTimeout(kPatience);
      const page = await context.newPage();
      pages.add(page);
      page.on('close', () => pages.delete(page));
      const allowed = (text) => refusals.some((status) => text.includes(`status of ${status}`));
      page.said = [];
      const say = (text) => (page.said = [...page.said, text].slice(-kConsoleLines));
      page.on('console', (message) => {
        say(`${message.type()}: ${message.text()}`);
        if (['error', 'warning'].includes(message.type()) && !allowed(message.text())) complaints.push(`${page.url()}: ${message.text()}`);
      });
      page.on('pageerror', (error) => {
        say(error.stack);
        complaints.push(`${page.url()}: ${error.stack}`);
      });
      const { origin } = new URL(url);
      page.unanswered = new Set();
      for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => page.unanswered.delete(request.url()));
      page.on('request', (request) => {
        page.unanswered.add(request.url());
        if (new URL(request.url()).origin !== origin) strangers.add(request.url());
      });
      await page.goto(url);
      return page;
    },
  };
}

export async function resize(page, width) {
  await page.setViewportSize({ width, height: width === 390 ? 844 : 860 });
  await page.waitForFunction((wanted) => innerWidth === wanted, width);
}

/** Waits until the page is no wider than its window: what follows the size of its place does so a little later. */
export async function fits(page, name) {
  const settled = page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth);
  if (await settled.then(() => true, () => false)) return;
  const wide = await page.evaluate(() =>
    [...document.body.querySelectorAll('*')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth)
      .map((element) => `${element.tagName}.${element.getAttribute('class') ?? ''} to ${element.getBoundingClientRect().right}`),
  );
  throw new Error(`${name} is too wide: ${wide.join(', ')}`);
}

/** The texts whose colours are closer than 4.5 to 1, as the WCAG counts it; runs in the page. What is disabled is
    not counted. To be waited for, it says only whether there is none. */
function faintTexts(waiting) {
  const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parse = (colour) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (colour, ground) => [...[0, 1, 2].map((part) => colour[part] * colour[3] + ground[part] * (1 - colour[3])), 1];
  const light = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) => 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue);
  const contrast = (element) => {
    const grounds = [];
    let opacity = 1;
    for (let outer = element; outer; outer = outer.parentElement) {
      grounds.unshift(parse(getComputedStyle(outer).backgroundColor));
      opacity *= Number(getComputedStyle(outer).opacity);
    }
    const ground = grounds.reduce((below, above) => over(above, below), [255, 255, 255, 1]);
    const style = getComputedStyle(element);
    const [red, green, blue, alpha] = parse(element instanceof SVGElement ? style.fill : style.color);
    const [darker, brighter] = [over([red, green, blue, alpha * opacity], ground), ground].map(luminance).sort((one, other) => one - other);
    return (brighter + 0.05) / (darker + 0.05);
  };
  const faint = [...document.body.querySelectorAll('*')]
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()))
    .filter((element) => element.getBoundingClientRect().width > 1 && !element.closest(':disabled'))
    .map((element) => [contrast(element), `${element.tagName}.${element.getAttribute('class') ?? ''} "${element.textContent.trim().slice(0, 40)}"`])
    .filter(([found]) => found < 4.5)
    .map(([found, text]) => `${text} has ${found.toFixed(2)}`);
  return waiting ? faint.length === 0 : faint;
}

/** Waits until every text stands out from its ground: colours change gradually. */
export async function readable(page, name) {
  const settled = page.waitForFunction(faintTexts, true);
  if (await settled.then(() => true, () => false)) return;
  throw new Error(`${name} is hard to read: ${(await page.evaluate(faintTexts, false)).join(', ')}`);
}

export async function screenshot(page, name) {
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** The API as a program uses it. */
export function apiOf(url, token) {
  return async (method, path, body) => {
    const answer = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };
}

/** Logs in without a browser and makes a token for an administrator. */
export async function makeToken(url, user, password) {
  const login = await fetch(`${url}/v1/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ user, password }),
  });
  const { csrf } = await login.json();
  const made = await fetch(`${url}/v1/tokens`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Cookie: login.headers.get('set-cookie').split(';')[0], 'X-Pawl-CSRF': csrf },
    body: JSON.stringify({ name: 'tests', role: 'admin' }),
  });
  return (await made.json()).token;
}
