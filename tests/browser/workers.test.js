// SPDX-License-Identifier: Apache-2.0
// The page of the system workers, on the tree that the demo brings.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fits, resize, screenshot, startBrowser, startServer } from './world.js';

let server;
let browser;
let page;

before(async () => {
  server = await startServer('demo: true\nworkers: {on_stop: drain}\n');
  browser = await startBrowser();
  page = await browser.open(server.link);
  await page.getByRole('heading', { level: 1, name: 'Overview', exact: true }).waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Workers' }).click();
  await page.getByRole('heading', { level: 1, name: 'Workers', exact: true }).waitFor();
});

after(async () => {
  await browser?.stop();
  await server?.stop();
});

const item = (name) => page.getByRole('treeitem', { name: new RegExp(`\\b${name} `) });

test('the tree shows parents, children, states and why', async () => {
  await item('plant').getByText('Running', { exact: true }).waitFor();
  await item('plant').getByText('2 of 2 children are healthy').waitFor();
  await item('plant').getByText('2/2').waitFor();
  await item('child-1').getByText('Connected', { exact: true }).waitFor();
  await item('ticker').getByText(/it runs as process \d+/).waitFor();
  await item('flaky').waitFor();
  assert.equal(await item('child-0').getAttribute('aria-level'), '2');
});

test('the worker that fails recovers, and what happened to it is shown', async () => {
  await item('flaky').click();
  await page.getByRole('heading', { name: 'flaky', exact: true }).waitFor();
  await item('flaky').getByText('Connected', { exact: true }).waitFor();
  await page.getByText(/failure 3 of 3, as configured/).first().waitFor();
  const history = page.getByRole('row').filter({ hasText: 'Moved' });
  await history.filter({ hasText: 'Connected' }).filter({ hasText: 'it is connected' }).first().waitFor();
});

test('keys walk through the tree, close and open it, and choose a worker', async () => {
  await item('plant').focus();
  await page.keyboard.press('ArrowLeft');
  await item('child-0').waitFor({ state: 'hidden' });
  assert.equal(await item('plant').getAttribute('aria-expanded'), 'false');
  await page.keyboard.press('ArrowRight');
  await item('child-0').waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'plant/child-0', exact: true }).waitFor();
  assert.equal(await item('child-0').getAttribute('aria-selected'), 'true');
  await page.keyboard.press('End');
  await page.keyboard.press('Home');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^flaky/);
});

test('a worker is shown with what is desired and observed, and what happened', async () => {
  await item('child-0').click();
  await page.getByText('10.0.0.7:502').waitFor();
  await page.getByText('device-0 at north').waitFor();
  await page.getByRole('cell', { name: 'Ordered Connect' }).first().waitFor();
  await item('ticker').click();
  await page.getByText(/tick 1/).waitFor();
});

test('it fits wide and narrow windows, by day and by night', async () => {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await resize(page, width);
      await fits(page, `the page at ${width} in ${colorScheme}`);
      await screenshot(page, `workers-${colorScheme}-${width}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 860 });
});

test('a worker is parked and runs again, and the page follows without being loaded again', async () => {
  await page.evaluate(() => (window.mark = 'still the same page'));
  await item('plant').click();
  await page.getByRole('button', { name: 'Park', exact: true }).click();
  await item('plant').getByText('Stopped', { exact: true }).waitFor();
  await item('child-1').getByText('Stopped', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await item('plant').getByText('Running', { exact: true }).waitFor();
  assert.equal(await page.evaluate(() => window.mark), 'still the same page');
});

test('nothing was asked of another server, and the browser had nothing to complain about', () => {
  assert.deepEqual([...browser.strangers], []);
  assert.deepEqual(browser.complaints, []);
});
