// SPDX-License-Identifier: Apache-2.0
// What the pages of flows work out, without a page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartOf, legalActions, queuedRuns, lookOf, positionOf, stepMarks, ticksOf, undoneSteps } from './flow.js';
import { duration } from './format.js';

const step = (name, more = {}) => ({ name, remote: false, undo: false, finalizer: false, ...more });
const flow = { name: 'ship', steps: [step('pick'), step('pack'), step('send'), step('tidy', { finalizer: true })], counts: {} };
const run = (more) => ({ flow: 'ship', id: '1', state: 'running', status: 'running', finished: false, step: 'pack', attempt: 1, ...more });
const time = (seconds) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
const span = (kind, name, from, to, outcome = '') => ({
  kind,
  step: name,
  attempt: kind === 'attempt' ? 1 : 0,
  from: time(from),
  ...(to === undefined ? {} : { to: time(to) }),
  outcome,
});

test('only what the state accepts is offered', () => {
  assert.deepEqual(legalActions(run({})), ['pause', 'retry', 'cancel']);
  assert.deepEqual(legalActions(run({ status: 'pausing' })), ['retry', 'cancel']);
  assert.deepEqual(legalActions(run({ status: 'cancelling' })), []);
  assert.deepEqual(legalActions(run({ state: 'paused', status: 'paused' })), ['resume', 'retry', 'cancel']);
  assert.deepEqual(legalActions(run({ state: 'closing', status: 'closing' })), []);
  assert.deepEqual(legalActions(run({ state: 'failed', status: 'failed', finished: true })), ['retry']);
});

test('finalizers are not counted among the steps of a run', () => {
  assert.deepEqual(positionOf(run({}), flow), { number: 2, of: 3 });
  assert.equal(positionOf(run({ step: 'gone' }), flow), undefined);
});

test('steps before the present one are done, those behind it are not yet', () => {
  assert.deepEqual(stepMarks(flow, run({}), []), ['done', 'present', 'next', 'next']);
  assert.deepEqual(stepMarks(flow, run({ status: 'queued', step: 'pick' }), []), ['next', 'next', 'next', 'next']);
});

test('the end of a run says what became of its step', () => {
  const ended = (state) => run({ state, status: state, finished: true });
  const finished = [span('attempt', 'tidy', 5, 6, 'done')];
  assert.deepEqual(stepMarks(flow, { ...ended('done'), step: 'send' }, finished), ['done', 'done', 'done', 'done']);
  assert.deepEqual(stepMarks(flow, ended('failed'), finished), ['done', 'failed', 'skipped', 'done']);
  assert.deepEqual(stepMarks(flow, ended('handed_off'), finished), ['done', 'done', 'skipped', 'done']);
  assert.deepEqual(stepMarks(flow, ended('cancelled'), []), ['done', 'skipped', 'skipped', 'skipped']);
  assert.deepEqual(stepMarks(flow, ended('cancelled'), [span('attempt', 'pack', 1, 2, 'stopped')]), ['done', 'stopped', 'skipped', 'skipped']);
});

test('a step counts as undone once its undoing is done', () => {
  const spans = [span('attempt', 'undo pack', 1, 2, 'done'), span('attempt', 'undo pick', 2, 3, 'failed')];
  assert.deepEqual([...undoneSteps(spans)], ['pack']);
});

test('rows are in the order of their first appearance, with what came before the first attempt above', () => {
  const spans = [
    span('delay', '', 0, 2),
    span('queue', 'pick', 2, 4),
    span('attempt', 'pick', 4, 5, 'done'),
    span('attempt', 'pack', 5, 6, 'failed'),
    span('backoff', 'pack', 6, 7),
    span('pause', '', 7, 8),
    span('queue', 'pick', 8, 9),
    span('attempt', 'pick', 9),
  ];
  const chart = chartOf(spans, Date.parse(time(12)));
  assert.deepEqual(chart.rows, ['before', 'pick', 'pack', 'paused']);
  assert.deepEqual(chart.bars.map((bar) => bar.row), [0, 0, 1, 2, 2, 3, 1, 1]);
  assert.deepEqual(chart.bars.map((bar) => bar.look), ['idle', 'idle', 'done', 'failed', 'backoff', 'idle', 'idle', 'active']);
  assert.equal(chart.begin, Date.parse(time(0)));
  assert.equal(chart.end, Date.parse(time(12)));
  assert.equal(chart.open, true);
});

test('an attempt that was cut off is told from one that failed', () => {
  assert.equal(lookOf(span('attempt', 'pick', 0, 1, 'interrupted')), 'cut');
  assert.equal(lookOf(span('attempt', 'pick', 0, 1, 'rewound')), 'failed');
});

test('ticks are few and at round times', () => {
  assert.deepEqual(ticksOf(2600, 6).map((tick) => tick.text), ['0', '0.5 s', '1 s', '1.5 s', '2 s', '2.5 s']);
  assert.deepEqual(ticksOf(61_000, 5).map((tick) => tick.text), ['0', '15 s', '30 s', '45 s', '1 min']);
  assert.deepEqual(ticksOf(100_000, 4).map((tick) => tick.text), ['0', '30 s', '1 min', '1 min 30 s']);
  assert.deepEqual(ticksOf(3 * 3_600_000, 4).map((tick) => tick.text), ['0', '1 h', '2 h', '3 h']);
  for (const length of [1, 999, 12_345, 86_400_000, 1e13]) assert.ok(ticksOf(length, 5).length <= 6, String(length));
});

test('in a line the higher priority goes first, and among equals who came first', () => {
  const waiting = (id, priority) => run({ id, status: 'queued', ...(priority === undefined ? {} : { priority }) });
  const line = queuedRuns([waiting('a'), waiting('b', 5), run({ id: 'admitted' }), waiting('c'), waiting('d', -1), waiting('e', 5)]);
  assert.deepEqual(line.map(({ id }) => id), ['b', 'e', 'a', 'c', 'd']);
});

test('a duration is told in the units that fit it', () => {
  const told = { 84: '84 ms', 1240: '1.24 s', 12_340: '12.3 s', 192_000: '3 min 12 s', 3_600_000: '1 h', 183_600_000: '2 d 3 h' };
  for (const [milliseconds, text] of Object.entries(told)) assert.equal(duration(Number(milliseconds)), text);
});
