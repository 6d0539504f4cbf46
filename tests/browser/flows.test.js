// SPDX-License-Identifier: Apache-2.0
// The pages of flows, on the demo's deliveries: pick, pack, ship. What goes to Atlantis is never shipped.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fits, readable, resize, screenshot, startBrowser, startServer } from './world.js';

const kFlow = 'demo_delivery';
const kSteps = ['pick', 'pack', 'ship'];

let server;
let browser;
let admin; // the page of an administrator, at 1280 pixels

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
const link = (page, name) => page.getByRole('navigation').getByRole('link', { name });
const state = (page) => page.getByRole('status', { name: 'State' });
const shownState = (page, text) => state(page).getByText(text).waitFor();
const step = (page, name) => page.getByRole('list', { name: 'Steps' }).getByRole('listitem').filter({ hasText: name });
const loaded = (page) =>
  page.waitForFunction(() => !document.querySelector('.skeleton')).catch((failure) => {
    throw new Error(`${page.url()} did not load; unanswered: ${[...page.unanswered].join(', ')}`, { cause: failure });
  });

/** The API with the login of the administrator's page. */
async function api(method, path, body) {
  const { status, text } = await admin.evaluate(
    async ([method, path, body]) => {
      const { csrf } = await (await fetch('/v1/me')).json();
      const answer = await fetch(path, {
        method,
        headers: { 'X-Pawl-CSRF': csrf, ...(body ? { 'Content-Type': 'application/json' } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return { status: answer.status, text: await answer.text() };
    },
    [method, path, body],
  );
  assert.ok(status < 300, `${method} ${path}: ${status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const runPath = (id) => `/runs/${kFlow}/${id}`;
const getRun = (id) => api('GET', `/v1/flows/${kFlow}/runs/${id}`);

function startRun(id, { city = 'Oslo', wait, ...options } = {}) {
  return api('POST', `/v1/flows/${kFlow}/runs${wait ? `?wait=${wait}` : ''}`, { id, request: { item: 'lamp', city }, ...options });
}

test('runs are listed as they begin, and a click opens one', async () => {
  await link(admin, 'Runs').click();
  await heading(admin, 'Runs');
  await loaded(admin);
  await admin.evaluate(() => (window.mark = 'still the same page'));
  await startRun('listed', { delay: '1h' });
  const row = admin.getByRole('row').filter({ has: admin.getByRole('link', { name: 'listed', exact: true }) });
  await row.getByText('delayed').waitFor();
  await row.getByText('1 of 3').waitFor();
  assert.equal(await admin.evaluate(() => window.mark), 'still the same page');
  await row.getByRole('link', { name: 'listed', exact: true }).click();
  await heading(admin, 'listed');
  assert.equal(new URL(admin.url()).pathname, runPath('listed'));
});

test('a run that has ended shows its steps, and on the chart what took time', async () => {
  const ended = await startRun('lost', { city: 'Atlantis', wait: '60s' });
  assert.equal(ended.state, 'aborted');
  await admin.goto(server.url + runPath('lost'));
  await shownState(admin, 'aborted');
  for (const name of ['pick', 'pack']) await step(admin, name).getByText('done', { exact: true }).waitFor();
  await step(admin, 'ship').getByText('failed').waitFor();
  await step(admin, 'pack').getByText(/^undo/).waitFor();
  await admin.getByText('there is no road to Atlantis').first().waitFor();
  const chart = admin.getByRole('group', { name: /^Timeline/ });
  for (const name of kSteps) await chart.getByRole('img', { name: new RegExp(`^${name}, attempt \\d`) }).last().waitFor();
  await chart.getByRole('img', { name: /^pack, attempt 1, done, .*from .* to / }).waitFor();
  const rows = await chart.locator('.gantt-row text').allTextContents();
  assert.deepEqual(rows.filter((name) => kSteps.includes(name)), kSteps);
  const table = admin.getByRole('table', { name: 'Timeline' });
  for (const name of kSteps) await table.getByRole('cell', { name, exact: true }).first().waitFor();
  await chart.getByRole('img', { name: /^pack, attempt 1/ }).hover();
  await admin.getByRole('tooltip').getByText('Duration').waitFor();
  await screenshot(admin, 'run-tooltip');
});

test('a run is followed from its start to its end, without a reload', async () => {
  await startRun('gate', { delay: '1h' });
  await startRun('followed', { after: { flow: kFlow, id: 'gate' }, on: 'always' });
  const page = admin;
  await page.goto(server.url + runPath('followed'));
  await shownState(page, 'waiting');
  await page.getByRole('link', { name: `${kFlow}/gate` }).waitFor();
  await page.evaluate(() => (window.mark = 'still the same page'));
  await api('POST', `/v1/flows/${kFlow}/runs/gate/cancel`, { reason: 'the gate opens' });
  await shownState(page, 'running');
  await screenshot(page, 'run-moving');
  await shownState(page, /^(done|aborted)$/); // now and then there is no road
  await step(page, 'pick').getByText('done', { exact: true }).waitFor();
  await page.locator('.gantt-bar.idle').first().waitFor();
  await page.locator('.gantt-now').waitFor({ state: 'detached' });
  assert.equal(await page.evaluate(() => window.mark), 'still the same page');
});

test('an operator pauses, resumes, cancels with a reason, and retries from a step', async () => {
  await startRun('steered', { city: 'Atlantis', delay: '1h' });
  await admin.goto(server.url + runPath('steered'));
  const button = (name) => admin.getByRole('button', { name, exact: true });
  await button('Pause').click();
  await shownState(admin, 'paused');
  assert.equal(await button('Pause').count(), 0);
  await button('Resume').click();
  await shownState(admin, 'delayed');
  await button('Cancel').click();
  await button('Keep the run').click();
  await button('Cancel').click();
  await button('Cancel the run').click(); // without a reason nothing is sent
  assert.equal((await getRun('steered')).finished, false);
  await admin.getByRole('dialog').getByLabel('Reason').fill('not wanted any more');
  await screenshot(admin, 'run-cancel');
  await button('Cancel the run').click();
  await shownState(admin, 'cancelled');
  await admin.getByText('not wanted any more').waitFor();
  assert.equal(await button('Cancel').count(), 0);
  await button('Retry from step…').click();
  await admin.getByRole('dialog').getByLabel('From step').selectOption('pack');
  await screenshot(admin, 'run-retry');
  await button('Retry from pack').click();
  await shownState(admin, 'aborted');
  const again = await getRun('steered');
  assert.equal(again.generation, 2);
  assert.equal(again.step, 'ship');
});

test('an operator starts a run, and sees why one is refused', async () => {
  const page = await browser.open(`${server.url}/runs`, { refusals: [400], storageState: await admin.context().storageState() });
  await page.getByRole('button', { name: 'New run' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Flow').selectOption(kFlow);
  await dialog.getByLabel('Id').fill('by-hand');
  await dialog.getByLabel('Request').fill('{"city": ');
  await dialog.getByRole('button', { name: 'Start run' }).click();
  await dialog.getByRole('alert').getByText('The request is not JSON.').waitFor();
  await dialog.getByLabel('Request').fill('{"city": 7}');
  await dialog.getByRole('button', { name: 'Start run' }).click();
  await dialog.getByRole('alert').getByText(/PAWL-\d+ wrong_type/).waitFor();
  await dialog.getByLabel('Request').fill('{"item": "teapot", "city": "Lima"}');
  await dialog.getByLabel('Delay').fill('2h');
  await screenshot(page, 'run-start');
  await dialog.getByRole('button', { name: 'Start run' }).click();
  await heading(page, 'by-hand');
  await shownState(page, 'delayed');
  assert.deepEqual((await getRun('by-hand')).request, { item: 'teapot', city: 'Lima' });
  await page.context().close();
});

test('a run leads to its instance and back', async () => {
  await admin.goto(server.url + runPath('listed'));
  await admin.getByRole('link', { name: 'Show as an instance' }).click();
  await admin.getByText('History').waitFor();
  assert.equal(new URL(admin.url()).pathname, `/instances/${kFlow}/listed`);
  await admin.getByRole('link', { name: 'Show as a run' }).click();
  await admin.getByRole('list', { name: 'Steps' }).waitFor();
  assert.equal(new URL(admin.url()).pathname, runPath('listed'));
});

test("the events by which a flow moves its run are nobody's to send", async () => {
  await admin.goto(`${server.url}/instances/${kFlow}/listed`);
  await shownState(admin, 'delayed');
  const card = admin.getByRole('region', { name: 'Run', exact: true });
  await card.getByRole('link', { name: 'the page of the run' }).waitFor();
  await loaded(admin);
  assert.equal(await admin.getByRole('region', { name: 'Send an event' }).count(), 0);
  await card.getByRole('link', { name: 'the page of the run' }).click();
  await admin.getByRole('button', { name: 'Cancel', exact: true }).waitFor();
  assert.equal(new URL(admin.url()).pathname, runPath('listed'));
});

test("the diagram of a flow's machine shows where it begins, and its events in few rows", async () => {
  await admin.setViewportSize({ width: 390, height: 844 });
  await admin.goto(`${server.url}/machines/${kFlow}`);
  const begins = admin.getByRole('link', { name: /^fresh: \d+ instances/ });
  await begins.waitFor();
  await admin.waitForFunction(() => {
    const place = document.querySelector('.diagram').getBoundingClientRect();
    const box = document.querySelector('.diagram a[aria-label^="fresh:"]').getBoundingClientRect();
    return box.left >= place.left && box.right <= place.right;
  });
  await admin.setViewportSize({ width: 1280, height: 860 });
  const rows = admin.getByRole('region', { name: 'Events' }).getByRole('row');
  assert.equal(await rows.filter({ hasText: 'StepDone' }).count(), 1);
  assert.deepEqual(await rows.filter({ hasText: 'Watch' }).locator('.outcome').allTextContents(), ['stays']);
  // The list of pages shows where one is, however long it is.
  await admin.reload();
  await admin.waitForFunction(() => document.querySelector('nav [aria-current]')?.getBoundingClientRect().bottom < document.querySelector('nav')?.getBoundingClientRect().bottom);
});

test('filters and pages of the list are kept in the address', async () => {
  for (let number = 0; number < 60; number += 1) await startRun(`shelf-${String(number).padStart(2, '0')}`, { delay: '1h' });
  await admin.goto(`${server.url}/runs`);
  await admin.getByLabel('Flow', { exact: true }).selectOption(kFlow);
  await admin.getByLabel('State', { exact: true }).selectOption('delayed');
  await admin.waitForURL(`**/runs?flow=${kFlow}&state=delayed`);
  await admin.waitForFunction(() => document.querySelectorAll('table.runs tbody tr').length === 50);
  await admin.getByRole('button', { name: 'Next page' }).click();
  await admin.getByRole('link', { name: 'shelf-00' }).waitFor();
  await admin.reload();
  await admin.getByRole('link', { name: 'shelf-00' }).waitFor();
  await admin.getByRole('button', { name: 'Previous page' }).click();
  await admin.getByRole('link', { name: 'shelf-59' }).waitFor();
  assert.equal(await admin.getByRole('button', { name: /^(First|Previous) page$/ }).count(), 0);
  await admin.getByRole('button', { name: 'Next page' }).click();
  await admin.getByRole('button', { name: 'First page' }).click();
  await admin.getByRole('link', { name: 'shelf-59' }).waitFor();
  await admin.goto(`${server.url}/runs?state=joining`); // a delivery has no children
  await admin.getByText('No matching runs').waitFor();
});

test('a queue shows who waits, the highest priority first, and is resized', async () => {
  await link(admin, 'Queues').click();
  await heading(admin, 'Queues');
  const card = admin.getByRole('region', { name: 'uplink', exact: true });
  await card.getByText('No runs in this queue.').waitFor();
  await card.getByLabel('New size of uplink').fill('1');
  await card.getByRole('button', { name: 'Resize' }).click();
  await card.getByText('of 1 permits in use').waitFor();
  // Each takes seconds, so that the line stands while it is looked at.
  for (let number = 0; number < 18; number += 1) await startRun(`held-${number}`, { queue: 'uplink', priority: 10 });
  await startRun('patient', { queue: 'uplink' });
  await startRun('urgent', { queue: 'uplink', priority: 5 });
  await card.getByRole('link', { name: `${kFlow}/urgent` }).waitFor();
  await card.getByText('Admitted').waitFor();
  const names = await card.getByRole('table').getByRole('link').allTextContents();
  assert.ok(names.indexOf(`${kFlow}/urgent`) >= 0, names.join());
  assert.equal(names.indexOf(`${kFlow}/urgent`) + 1, names.indexOf(`${kFlow}/patient`), names.join());
  await screenshot(admin, 'queue-line');
  await card.getByRole('link', { name: `${kFlow}/patient` }).click();
  await shownState(admin, 'queued');
});

test('the pages of flows fit both widths and can be read in both colour schemes', async () => {
  const places = { runs: '/runs?finished=any', run: runPath('lost'), 'run-waiting': runPath('patient'), queues: '/queues' };
  for (const [name, path] of Object.entries(places)) {
    await admin.goto(server.url + path);
    await loaded(admin);
    for (const colorScheme of ['light', 'dark']) {
      await admin.emulateMedia({ colorScheme });
      await readable(admin, `${name} in ${colorScheme}`);
      for (const width of [1280, 390]) {
        await resize(admin, width);
        await fits(admin, `${name} at ${width} in ${colorScheme}`);
        await screenshot(admin, `${name}-${colorScheme}-${width}`);
      }
    }
  }
  await admin.emulateMedia({ colorScheme: 'light' });
  await admin.setViewportSize({ width: 1280, height: 860 });
});

test('the chart is one stop of the Tab key, and the arrow keys go from bar to bar', async () => {
  await admin.goto(server.url + runPath('lost'));
  const bars = admin.locator('.gantt-bar');
  await bars.nth(2).waitFor();
  const reached = () => admin.evaluate(() => document.activeElement?.getAttribute('data-bar'));
  for (let presses = 0; presses < 60 && (await reached()) == null; presses += 1) await admin.keyboard.press('Tab');
  assert.equal(await reached(), '0');
  await admin.getByRole('tooltip').getByText('From').waitFor();
  await admin.keyboard.press('ArrowRight');
  assert.equal(await reached(), '1');
  await admin.keyboard.press('End');
  assert.equal(Number(await reached()), (await bars.count()) - 1);
  await admin.keyboard.press('Escape');
  await admin.getByRole('tooltip').waitFor({ state: 'detached' });
  await admin.keyboard.press('Tab');
  assert.equal(await reached(), null);
});

test('a viewer sees a run, changes nothing and is told why', async () => {
  const [given, chosen] = ['given by another', 'watching all the time'];
  await api('PUT', '/v1/users/eve', { role: 'viewer', password: given });
  const page = await browser.open(server.url + runPath('listed'));
  await page.getByLabel('User').fill('eve');
  await page.getByLabel('Password', { exact: true }).fill(given);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByLabel('Current password').fill(given);
  await page.getByLabel('New password', { exact: false }).first().fill(chosen);
  await page.getByLabel('Repeat new password').fill(chosen);
  await page.getByRole('button', { name: 'Set password' }).click();
  await shownState(page, 'delayed');
  await page.getByText('Changing a run needs the role operator; you have the role viewer.').waitFor();
  for (const name of ['Pause', 'Cancel', 'Retry from step…']) {
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0);
  }
  await link(page, 'Queues').click();
  await page.getByText('Resizing a queue needs the role operator.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Resize' }).count(), 0);
  await page.context().close();
});

test('a run that is not known is refused in words', async () => {
  const page = await browser.open(server.url, { refusals: [404], storageState: await admin.context().storageState() });
  await page.goto(server.url + runPath('nobody'));
  await page.getByRole('alert').waitFor();
  await page.getByText('Retention may have removed this run').waitFor();
  await page.context().close();
});

test('nothing was asked of another server, and the browser had nothing to complain about', () => {
  assert.deepEqual([...browser.strangers], []);
  assert.deepEqual(browser.complaints, []);
});
