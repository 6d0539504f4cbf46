// SPDX-License-Identifier: Apache-2.0
// The dashboard as people use it: a real browser on a real server whose demo moves by itself.
import assert from 'node:assert/strict';
import { after, before, test as declare } from 'node:test';
import { apiOf, fits, makeToken, readable, resize, screenshot, startBrowser, startHello, startServer } from './world.js';

const kPassword = 'correct horse battery';
const kViewer = 'watching all the time';

let server;
let browser;
let admin; // the page of an administrator, at 1280 pixels
let api;

before(async () => {
  server = await startServer();
  browser = await startBrowser();
});

after(async () => {
  await browser?.stop();
  await server?.stop();
});

/** A test whose failure tells what the browser was at. */
const test = (name, run) =>
  declare(name, () =>
    Promise.resolve()
      .then(run)
      .catch((failure) => {
        throw new Error(`${failure.message}\nThe open pages:\n${browser?.describe()}`, { cause: failure });
      }),
  );

const heading = (page, text) => page.getByRole('heading', { level: 1, name: text, exact: true }).waitFor();
const link = (page, name) => page.getByRole('navigation').getByRole('link', { name });
const shownState = (page, state) => page.getByRole('status', { name: 'State' }).getByText(state, { exact: true }).waitFor();
const loaded = (page) => page.waitForFunction(() => !document.querySelector('.skeleton'));

async function logIn(page, user, password) {
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

async function choosePassword(page, old, fresh) {
  await heading(page, 'Choose a password');
  await page.getByLabel('Current password').fill(old);
  await page.getByLabel('New password', { exact: false }).first().fill(fresh);
  await page.getByLabel('Repeat new password').fill(fresh);
  await page.getByRole('button', { name: 'Set password' }).click();
}

/** An order that nobody moves: it is not checked out. */
async function makeOrder(key) {
  await api('POST', '/v1/instances/demo_order', { key, data: { item: 'lamp', city: 'Oslo', cents: 1200 } });
  return `${server.url}/instances/demo_order/${key}`;
}

test('the login link opens the dashboard at once, and only once', async () => {
  admin = await browser.open(server.link, { refusals: [401] });
  await heading(admin, 'Overview');
  assert.equal(new URL(admin.url()).pathname, '/');
  assert.equal(new URL(admin.url()).hash, '');
  const second = await browser.open(server.link, { refusals: [401] });
  await second.getByText('used or expired').waitFor();
  await second.context().close();
});

test('a one-time password must be changed, and logging out ends the login', async () => {
  const page = await browser.open(server.url, { refusals: [401] });
  await logIn(page, server.user, 'not the password');
  await page.getByText('the user or the password is wrong').waitFor();
  await screenshot(page, 'login-refused');
  await logIn(page, server.user, server.password);
  await choosePassword(page, server.password, kPassword);
  await heading(page, 'Overview');
  await page.getByRole('button', { name: 'Log out' }).click();
  await heading(page, 'Log in');
  await page.reload();
  await heading(page, 'Log in');
  await logIn(page, server.user, kPassword);
  await heading(page, 'Overview');
  await page.context().close();
  api = apiOf(server.url, await makeToken(server.url, server.user, kPassword));
  // The change of the password has ended the login of the link, too.
  await admin.goto(server.url);
  await heading(admin, 'Log in');
  await logIn(admin, server.user, kPassword);
  await heading(admin, 'Overview');
});

test('every page is reached by a click', async () => {
  const pages = ['Instances', 'Live feed', 'Timers', 'Permit pools', 'Users', 'Tokens', 'Shop', 'Overview'];
  for (const name of pages) {
    await link(admin, name).click();
    await heading(admin, name);
    await loaded(admin);
  }
  await link(admin, 'demo_order').click();
  await heading(admin, 'demo_order');
  await admin.getByTitle('Your account').click();
  await heading(admin, 'Account');
});

test('every page fits both widths and can be read in both colour schemes', async () => {
  await makeOrder('fitting');
  const places = {
    overview: '/',
    machine: '/machines/demo_order',
    instances: '/instances?machine=demo_order&finished=any',
    instance: '/instances/demo_order/fitting',
    feed: '/feed',
    timers: '/timers',
    pools: '/pools',
    users: '/users',
    tokens: '/tokens',
    account: '/account',
    system: '/systems/demo',
  };
  const page = await browser.open(server.url);
  await logIn(page, server.user, kPassword);
  await heading(page, 'Overview');
  for (const [name, path] of Object.entries(places)) {
    await page.goto(server.url + path);
    await loaded(page);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.waitForFunction((wanted) => matchMedia(`(prefers-color-scheme: ${wanted})`).matches, colorScheme);
      await readable(page, `${name} in ${colorScheme}`);
      for (const width of [1280, 390]) {
        await resize(page, width);
        await fits(page, `${name} at ${width} in ${colorScheme}`);
        await screenshot(page, `${name}-${colorScheme}-${width}`);
      }
      const ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      assert.equal(ground, colorScheme === 'dark' ? 'rgb(14, 15, 19)' : 'rgb(247, 247, 249)', `${name} in ${colorScheme}`);
    }
  }
  // The switch comes before what the system prefers, and is kept.
  await page.emulateMedia({ colorScheme: 'light' });
  await resize(page, 1280);
  await page.getByRole('button', { name: /^Colours/ }).click();
  await page.getByRole('button', { name: /^Colours: light/ }).click();
  await page.reload();
  await page.getByRole('button', { name: /^Colours: dark/ }).waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), 'rgb(14, 15, 19)');
  // On a phone the pages are behind the menu.
  await resize(page, 390);
  await page.getByRole('button', { name: 'Menu' }).click();
  await screenshot(page, 'menu-390');
  await link(page, 'Timers').click();
  await heading(page, 'Timers');
  await page.getByRole('navigation').waitFor({ state: 'hidden' });
  await page.context().close();
});

test('a change is seen live, without a reload', async () => {
  const url = await makeOrder('watched');
  await admin.goto(url);
  await shownState(admin, 'placed');
  await admin.evaluate(() => (window.mark = 'still the same page'));
  await api('POST', '/v1/instances/demo_order/watched/events', { event: 'Cancel', payload: { reason: 'seen live' } });
  await shownState(admin, 'cancelled');
  const newest = admin.getByRole('list', { name: 'History' }).getByRole('listitem').first();
  await newest.getByText('Cancel', { exact: true }).waitFor();
  await newest.locator('ins').getByText('"seen live"').waitFor();
  assert.equal(await admin.evaluate(() => window.mark), 'still the same page');
});

test('a change that comes before the page listens is seen, too', async () => {
  const url = await makeOrder('early');
  let listen;
  const changed = new Promise((go) => (listen = go));
  await admin.route(/\/v1\/events\?.*key=early/, async (route) => {
    await changed;
    await route.continue();
  });
  await admin.goto(url);
  const newest = admin.getByRole('list', { name: 'History' }).getByRole('listitem').first();
  await newest.getByText('Created', { exact: true }).waitFor();
  await api('POST', '/v1/instances/demo_order/early/events', { event: 'Cancel', payload: { reason: 'before' } });
  listen();
  await newest.getByText('Cancel', { exact: true }).waitFor();
  await admin.unroute(/\/v1\/events\?.*key=early/);
});

test('the overview counts and the diagram move by themselves', async () => {
  await admin.goto(server.url);
  const entries = async () => Number((await admin.locator('.facts dd').first().textContent()).replace(/\D/g, ''));
  await admin.waitForFunction(() => /\d/.test(document.querySelector('.facts dd')?.textContent ?? ''));
  const earlier = await entries();
  await admin.waitForFunction(
    (than) => Number(document.querySelector('.facts dd')?.textContent?.replace(/\D/g, '')) > than,
    earlier,
  );
  await admin.locator('.chart canvas').waitFor();
  await link(admin, 'demo_order').click();
  await admin.locator('.edge.hot').first().waitFor();
  await admin.locator('.traveller').first().waitFor({ state: 'attached' });
  await screenshot(admin, 'machine-moving');
  await admin.getByRole('link', { name: /^delivered: \d+ instances/ }).click();
  await heading(admin, 'Instances');
  assert.equal(new URL(admin.url()).search, '?machine=demo_order&state=delivered');
  await loaded(admin);
  assert.equal(await admin.getByLabel('State').inputValue(), 'delivered');
});

test('an operator sends an event by its button, and sees why one is refused', async () => {
  const page = await browser.open(await makeOrder('pressed'), { refusals: [400, 409] });
  await logIn(page, server.user, kPassword);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  const payload = page.getByLabel('Payload of Cancel');
  await payload.fill('{"reason": ');
  await page.getByRole('button', { name: 'Send Cancel' }).click();
  await page.getByRole('alert').getByText('The payload is not JSON.').waitFor();
  await payload.fill('{"reason": 7}');
  await page.getByRole('button', { name: 'Send Cancel' }).click();
  await page.getByRole('alert').getByText(/PAWL-\d+ wrong_type/).waitFor();
  await screenshot(page, 'event-refused');
  await payload.fill('{"reason": "changed my mind"}');
  await page.getByRole('button', { name: 'Send Cancel' }).click();
  await shownState(page, 'cancelled');
  await page.getByText('This instance is finished').waitFor();
  const { data } = await api('GET', '/v1/instances/demo_order/pressed');
  assert.equal(data.reason, 'changed my mind');
  await page.context().close();
});

test('an event for a version that has passed is a conflict', async () => {
  const url = await makeOrder('contested');
  const page = await browser.open(server.url, { refusals: [409] });
  await logIn(page, server.user, kPassword);
  await heading(page, 'Overview');
  // A page whose view of the instance stays behind.
  const old = await api('GET', '/v1/instances/demo_order/contested');
  await page.route('**/v1/instances/demo_order/contested', (route) => route.fulfill({ json: old }));
  await page.goto(url);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await api('POST', '/v1/instances/demo_order/contested/events', { event: 'Checkout' });
  await page.getByRole('button', { name: 'Send Cancel' }).click();
  await page.getByRole('alert').getByText(/PAWL-\d+ version_conflict/).waitFor();
  await screenshot(page, 'event-conflict');
  await page.context().close();
});

test('a viewer sees everything, changes nothing and is told why', async () => {
  await api('PUT', '/v1/users/eve', { role: 'viewer', password: 'given by another' });
  const page = await browser.open(await makeOrder('guarded'), { refusals: [403] });
  await logIn(page, 'eve', 'given by another');
  await choosePassword(page, 'given by another', kViewer);
  await shownState(page, 'placed');
  await page.getByText('Sending events needs the role operator; you have the role viewer.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Cancel', exact: true }).isDisabled(), true);
  await screenshot(page, 'viewer');
  await link(page, 'Permit pools').click();
  await page.getByText('Resizing a permit pool needs the role operator.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Resize' }).count(), 0);
  assert.equal(await link(page, 'Users').count(), 0);
  await page.goto(`${server.url}/users`);
  await page.getByRole('alert').getByText(/needs the role admin/).waitFor();
  await page.context().close();
});

test('addresses are kept: filters, pages and the way back', async () => {
  for (let number = 0; number < 60; number += 1) await makeOrder(`shelf-${String(number).padStart(2, '0')}`);
  await admin.goto(`${server.url}/instances?machine=demo_order&state=placed`);
  await admin.getByLabel('Key starts with').fill('shelf-');
  await admin.waitForURL('**/instances?machine=demo_order&state=placed&prefix=shelf-');
  await admin.getByRole('link', { name: 'shelf-00' }).waitFor();
  await admin.waitForFunction(() => document.querySelectorAll('tbody tr').length === 50);
  await admin.getByRole('button', { name: 'Next page' }).click();
  await admin.getByRole('link', { name: 'shelf-59' }).waitFor();
  await admin.reload();
  await admin.getByRole('link', { name: 'shelf-59' }).click();
  await heading(admin, 'shelf-59');
  await admin.reload();
  await heading(admin, 'shelf-59');
  await admin.goBack();
  await admin.getByRole('link', { name: 'shelf-50' }).waitFor();
  await admin.goBack();
  await admin.getByRole('link', { name: 'shelf-00' }).waitFor();
  assert.equal(await admin.getByLabel('Key starts with').inputValue(), 'shelf-');
  await admin.goto(`${server.url}/nowhere/at/all`);
  await heading(admin, 'Nothing here');
});

test('the live feed pauses, and goes on without a gap', async () => {
  await admin.goto(`${server.url}/feed?machine=demo_order&kind=created`);
  await admin.getByText('Live', { exact: true }).waitFor();
  await makeOrder('before-pause');
  await admin.getByRole('link', { name: 'before-pause' }).waitFor();
  await admin.getByRole('button', { name: 'Pause' }).click();
  await admin.getByText('Paused', { exact: true }).waitFor();
  for (let number = 0; number < 5; number += 1) await makeOrder(`paused-${number}`);
  assert.equal(await admin.getByRole('link', { name: 'paused-4' }).count(), 0);
  await admin.getByRole('button', { name: 'Resume' }).click();
  await admin.getByRole('link', { name: 'paused-4' }).waitFor();
  for (let number = 0; number < 5; number += 1) {
    assert.equal(await admin.getByRole('link', { name: `paused-${number}` }).count(), 1);
  }
  const row = admin.getByRole('row').filter({ has: admin.getByRole('link', { name: 'paused-4' }) });
  await row.getByRole('button', { name: /^Details/ }).click();
  await admin.getByText('Data after the event').waitFor();
  await screenshot(admin, 'feed-details');
});

test('pools are resized; tokens are shown once, work, and are revoked', async () => {
  await link(admin, 'Permit pools').click();
  await admin.getByLabel('New size of uplink').fill('9');
  await admin.getByRole('region', { name: 'uplink' }).getByRole('button', { name: 'Resize' }).click();
  await admin.getByText('of 9 permits in use').waitFor();
  await link(admin, 'Tokens').click();
  await admin.getByRole('button', { name: 'New token' }).click();
  await admin.getByLabel('Name').fill('robot');
  await screenshot(admin, 'token-form');
  await admin.getByRole('button', { name: 'Create token' }).click();
  const token = (await admin.locator('dialog pre').textContent()).trim();
  await admin.getByRole('button', { name: 'Done' }).click();
  const robot = apiOf(server.url, token);
  assert.ok((await robot('GET', '/v1/machines')).machines.length > 0);
  await admin.getByRole('row', { name: /robot/ }).getByRole('button', { name: 'Revoke' }).click();
  await admin.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await admin.getByRole('row', { name: /robot/ }).waitFor({ state: 'detached' });
  await assert.rejects(robot('GET', '/v1/machines'), /401/);
});

test("a system's page works inside the frame", async () => {
  await link(admin, 'Shop').click();
  await admin.getByRole('cell').first().waitFor();
  await admin.getByRole('button', { name: 'Order a teapot' }).click();
  await admin.getByRole('heading', { level: 1, name: /^teapot-/ }).waitFor();
  await admin.getByText('Checkout', { exact: true }).waitFor();
});

test("the example's page works, on a server without logins", async () => {
  const hello = await startHello();
  try {
    const page = await browser.open(hello.page);
    await heading(page, 'Guest book');
    await page.getByText('Hello, Ada! Hello, Max!').waitFor();
    await page.getByText('admin, no login').waitFor();
    assert.equal(await link(page, 'Users').count(), 0);
    await page.context().close();
  } finally {
    await hello.stop();
  }
});

/** Presses Tab until the element that has the focus answers to this description. */
async function tabTo(page, role, name) {
  const wanted = page.getByRole(role, { name, exact: true }).first();
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press('Tab');
    if (await wanted.evaluate((element) => element === document.activeElement).catch(() => false)) return;
  }
  assert.fail(`no ${role} "${name}" can be reached with the Tab key`);
}

test('everything on the main path can be done with the keyboard', async () => {
  await makeOrder('aa-by-keyboard');
  const page = await browser.open(server.url);
  await heading(page, 'Log in');
  await page.keyboard.type(server.user);
  await page.keyboard.press('Tab');
  await page.keyboard.type(kPassword);
  await page.keyboard.press('Enter');
  await heading(page, 'Overview');
  await page.reload();
  await heading(page, 'Overview');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to the content');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid');
  await tabTo(page, 'link', 'Instances');
  await page.keyboard.press('Enter');
  await heading(page, 'Instances');
  await tabTo(page, 'searchbox', 'Key starts with');
  await page.keyboard.type('aa-by');
  await page.getByRole('link', { name: 'aa-by-keyboard' }).waitFor();
  await tabTo(page, 'link', 'aa-by-keyboard');
  await page.keyboard.press('Enter');
  await shownState(page, 'placed');
  await tabTo(page, 'button', 'Cancel');
  await page.keyboard.press('Enter');
  await page.getByLabel('Payload of Cancel').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'TEXTAREA');
  await page.keyboard.press('Control+Enter');
  await shownState(page, 'cancelled');
  await page.context().close();
});

test('the page goes on by itself when the server comes back', async () => {
  await admin.goto(server.url);
  await heading(admin, 'Overview');
  await admin.route('**/v1/stats', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"code":"stopped","number":1,"title":"t","detail":"d"}' }));
  const before = browser.complaints.length;
  await admin.getByText('reconnecting', { exact: true }).waitFor();
  await admin.unroute('**/v1/stats');
  await admin.getByText('live', { exact: true }).waitFor();
  browser.complaints.splice(before); // the refusals that were played
});

test('nothing was asked of another server, and the browser had nothing to complain about', () => {
  assert.deepEqual([...browser.strangers], []);
  assert.deepEqual(browser.complaints, []);
});
