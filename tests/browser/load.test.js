// SPDX-License-Identifier: Apache-2.0
// The dashboard where much happens at once: entries faster than they are read, tabs more than a browser connects.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startBrowser, startServer } from './world.js';

const kConnections = 6; // what Chromium opens to one server

let server;
let browser;
let admin;

before(async () => {
  server = await startServer();
  browser = await startBrowser();
  admin = await browser.open(server.link);
  await heading(admin, 'Overview');
});

after(async () => {
  await browser?.stop();
  await server?.stop();
});

const heading = (page, text) => page.getByRole('heading', { level: 1, name: text, exact: true }).waitFor();

/** Makes orders that nobody moves, with the login of the page. */
const makeOrders = (page, keys) =>
  page.evaluate(async (keys) => {
    const { csrf } = await (await fetch('/v1/me')).json();
    for (const key of keys) {
      const answer = await fetch('/v1/instances/demo_order', {
        method: 'POST',
        headers: { 'X-Pawl-CSRF': csrf, 'Content-Type': 'application/json' },
        body: JSON.stringify({ key, data: { item: 'lamp', city: 'Oslo', cents: 1200 } }),
      });
      if (!answer.ok) throw new Error(await answer.text());
    }
  }, keys);

/** A stream of the log that tells of a change every few milliseconds, whatever is asked of it. */
function playEvents() {
  window.EventSource = class extends EventTarget {
    static CLOSED = 2;
    constructor() {
      super();
      let seq = 1;
      this.timer = setInterval(() => {
        const entry = { seq: ++seq, cursor: String(seq), at: new Date().toISOString(), machine: 'demo_order', key: 'played', id: 'played', kind: 'fired', event: 'Restock', state: 'placed', version: seq };
        this.dispatchEvent(new MessageEvent('fired', { data: JSON.stringify(entry), lastEventId: String(seq) }));
        window.played = (window.played ?? 0) + 1;
      }, 5);
      setTimeout(() => this.onopen?.());
    }
    close() {
      clearInterval(this.timer);
    }
  };
}

/** Whether somebody looks at the page, as the browser would tell it. */
const look = (page, at) =>
  page.evaluate((at) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => !at });
    document.dispatchEvent(new Event('visibilitychange'));
  }, at);

const login = async () => ({ storageState: await admin.context().storageState() });

test('what is typed into a search stays, however often the page is drawn meanwhile', async () => {
  const page = await browser.open(server.url, await login());
  await page.addInitScript(playEvents);
  await page.goto(`${server.url}/feed?machine=demo_order`);
  await page.getByRole('row').nth(5).waitFor();
  const key = page.getByLabel('Key', { exact: true });
  await key.pressSequentially('played-by-hand', { delay: 60 });
  await page.waitForURL('**/feed?machine=demo_order&key=played-by-hand');
  assert.equal(await key.inputValue(), 'played-by-hand');
  // The address comes before what is typed.
  await page.getByLabel('Machine').selectOption('');
  await page.getByLabel('Machine').selectOption('demo_order');
  assert.equal(await key.inputValue(), '');
  await page.context().close();
});

test('an instance that changes all the time is shown, and no question about it is given up', async () => {
  await makeOrders(admin, ['played']);
  const page = await browser.open(server.url, await login());
  const givenUp = [];
  page.on('requestfailed', (request) => givenUp.push(request.url()));
  await page.addInitScript(playEvents);
  await page.goto(`${server.url}/instances/demo_order/played`);
  await page.getByRole('list', { name: 'History' }).getByText('Created', { exact: true }).waitFor();
  await page.waitForFunction(() => window.played > 300);
  assert.deepEqual(givenUp.filter((url) => url.includes('/v1/instances/')), []);
  await page.context().close();
});

test('tabs that nobody looks at leave the connections to the others, and catch up when they are seen', async () => {
  const context = await login();
  const first = await browser.open(`${server.url}/feed?machine=demo_order&kind=created`, context);
  const tabs = [first];
  for (let number = 1; number < kConnections; number += 1) tabs.push(await first.context().newPage());
  for (const tab of tabs) {
    await tab.goto(`${server.url}/feed?machine=demo_order&kind=created`);
    await tab.getByText('Live', { exact: true }).waitFor();
    await look(tab, false);
  }
  const last = await first.context().newPage();
  await last.goto(`${server.url}/instances?machine=demo_order&state=placed`);
  await last.getByRole('link', { name: 'played' }).waitFor();
  await makeOrders(last, ['while-hidden-1', 'while-hidden-2']);
  assert.equal(await first.getByRole('link', { name: /^while-hidden/ }).count(), 0);
  await look(first, true);
  await first.getByRole('link', { name: 'while-hidden-2' }).waitFor();
  assert.equal(await first.getByRole('link', { name: /^while-hidden/ }).count(), 2);
  await first.context().close();
});

test('a page without a timer is not the end where another one follows', async () => {
  await admin.route('**/v1/timers', (route) => route.fulfill({ json: { timers: [], next: 'further' } }));
  await admin.route('**/v1/timers?cursor=further', (route) => route.fulfill({ json: { timers: [] } }));
  await admin.goto(`${server.url}/timers`);
  await admin.getByText('No matches on this page').waitFor();
  assert.equal(await admin.getByText('No timers').count(), 0);
  await admin.getByRole('button', { name: 'Next page' }).click();
  await admin.getByText('No timers').waitFor();
  await admin.unrouteAll();
});

test('nothing was asked of another server, and the browser had nothing to complain about', () => {
  assert.deepEqual([...browser.strangers], []);
  assert.deepEqual(browser.complaints, []);
});
