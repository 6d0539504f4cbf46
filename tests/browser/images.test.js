// SPDX-License-Identifier: Apache-2.0
// The page of the system images, on the image that the demo brings.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fits, resize, screenshot, startBrowser, startServer } from './world.js';

const kParts = ['download', 'unpack', 'activate'];

let server;
let browser;
let page;

before(async () => {
  server = await startServer('demo: true\n');
  browser = await startBrowser();
  page = await browser.open(server.link);
  await page.getByRole('heading', { level: 1, name: 'Overview', exact: true }).waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Images' }).click();
  await page.getByRole('heading', { level: 1, name: 'Images', exact: true }).waitFor();
});

after(async () => {
  await browser?.stop();
  await server?.stop();
});

const row = () => page.getByRole('row').filter({ hasText: 'hello' });
const button = (name) => row().getByRole('button', { name, exact: true });

test('the pool and the image of the demo are shown', async () => {
  await page.getByRole('heading', { name: 'Pool' }).waitFor();
  await page.getByRole('progressbar', { name: 'How full the pool is' }).waitFor();
  await page.getByText(/B of .*B used \(\d+ %\)/).waitFor();
  await button('Deactivate').waitFor();
  await row().getByText('203', { exact: true }).waitFor(); // its files
  await row().getByText(/^\/.*\/images\/pool\//).waitFor();
});

test('an image has three parts, and each leads to its run', async () => {
  const parts = row().locator('.images-part');
  assert.equal(await parts.count(), kParts.length);
  for (const name of kParts) await row().getByRole('link', { name: new RegExp(`^${name}: `) }).waitFor();
  assert.equal(await row().locator('.images-part.good').count(), kParts.length);
  // Filled and coloured: what the sheet says reaches the bars.
  const bar = await row().locator('.images-part b').first().evaluate((one) => ({ width: one.clientWidth, height: one.clientHeight }));
  assert.ok(bar.width > 20 && bar.height > 2, JSON.stringify(bar));
  await row().getByRole('link', { name: /^unpack: / }).click();
  await page.getByRole('heading', { level: 1, name: 'hello', exact: true }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/runs/unpack-image/hello');
  await page.goBack();
  await button('Deactivate').waitFor();
});

test('it fits wide and narrow windows, by day and by night', async () => {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await resize(page, width);
      await fits(page, `the page at ${width} in ${colorScheme}`);
      await screenshot(page, `images-${colorScheme}-${width}`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 860 });
});

test('what is changed here or elsewhere is seen without loading the page again', async () => {
  await page.evaluate(() => (window.mark = 'still the same page'));
  await button('Deactivate').click();
  await row().getByText('inactive', { exact: true }).waitFor();
  // As somebody else would, with the login of this page.
  const status = await page.evaluate(async () => {
    const { csrf } = await (await fetch('/v1/me')).json();
    const answer = await fetch('/v1/images/hello/activate', { method: 'POST', headers: { 'X-Pawl-CSRF': csrf, 'Content-Type': 'application/json' }, body: '{}' });
    return answer.status;
  });
  assert.equal(status, 202);
  await button('Deactivate').waitFor();
  assert.equal(await page.evaluate(() => window.mark), 'still the same page');
  await screenshot(page, 'images-changed');
});

test('nothing was asked of another server, and the browser had nothing to complain about', () => {
  assert.deepEqual([...browser.strangers], []);
  assert.deepEqual(browser.complaints, []);
});
