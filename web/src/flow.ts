// SPDX-License-Identifier: Apache-2.0
// What the pages of flows work out from what the server answers; nothing here touches the page.
import { duration } from './format';
import type { Flow, Run, RunSpan } from './types';

export const runStates = ['delayed', 'waiting', 'running', 'joining', 'paused', 'closing', 'done', 'handed_off', 'aborted', 'failed', 'cancelled'];

export type RunAction = 'pause' | 'resume' | 'retry' | 'cancel';

/** What the server accepts for a run in its present state, without what was asked for already. */
export function legalActions(run: Run): RunAction[] {
  if (run.finished) return ['retry'];
  if (run.state === 'closing' || run.status === 'cancelling') return [];
  if (run.state === 'paused') return ['resume', 'retry', 'cancel'];
  return run.status === 'pausing' ? ['retry', 'cancel'] : ['pause', 'retry', 'cancel'];
}

/** The steps that a run goes through, without those that finish it. */
export const ordinarySteps = (flow: Flow | undefined) => flow?.steps.filter((step) => !step.finalizer) ?? [];

/** Which step of how many; undefined where the flow does not know it. */
export function positionOf(run: Run, flow: Flow | undefined): { number: number; of: number } | undefined {
  const steps = ordinarySteps(flow);
  const index = steps.findIndex((step) => step.name === run.step);
  return index < 0 ? undefined : { number: index + 1, of: steps.length };
}

export type StepMark = 'done' | 'present' | 'next' | 'failed' | 'stopped' | 'skipped';

const lastAttempt = (spans: RunSpan[], step: string) => spans.findLast((span) => span.kind === 'attempt' && span.step === step);

function markOfPresent(run: Run, spans: RunSpan[]): StepMark {
  const outcome = lastAttempt(spans, run.step)?.outcome;
  switch (run.state) {
    case 'done':
    case 'handed_off':
      return 'done';
    case 'failed':
    case 'aborted':
      return 'failed';
    case 'cancelled':
      return outcome === undefined ? 'skipped' : outcome === 'done' ? 'done' : 'stopped';
    case 'closing':
      return outcome === 'done' || outcome === 'failed' ? outcome : outcome === undefined ? 'skipped' : 'stopped';
    case 'fresh':
    case 'delayed':
    case 'waiting':
      return 'next';
    default:
      return run.status === 'queued' ? 'next' : 'present';
  }
}

function markOfFinalizer(name: string, run: Run, spans: RunSpan[]): StepMark {
  const last = lastAttempt(spans, name);
  if (!last) return run.finished ? 'skipped' : 'next';
  if (!last.to) return 'present';
  return last.outcome === 'done' ? 'done' : run.finished ? 'failed' : 'present';
}

/** How far each step of the flow is, in the flow's order. */
export function stepMarks(flow: Flow, run: Run, spans: RunSpan[]): StepMark[] {
  const present = flow.steps.findIndex((step) => step.name === run.step);
  const over = run.finished || run.state === 'closing';
  return flow.steps.map((step, index) => {
    if (step.finalizer) return markOfFinalizer(step.name, run, spans);
    if (index < present || run.state === 'done') return 'done';
    if (index === present) return markOfPresent(run, spans);
    return over ? 'skipped' : 'next';
  });
}

/** The names of the steps whose effects were taken back. */
export function undoneSteps(spans: RunSpan[]): Set<string> {
  return new Set(spans.filter((span) => span.step.startsWith('undo ') && span.outcome === 'done').map((span) => span.step.slice(5)));
}

export type BarLook = 'done' | 'failed' | 'active' | 'backoff' | 'idle' | 'cut';

export interface Bar {
  span: RunSpan;
  row: number;
  from: number;
  to: number;
  look: BarLook;
  open: boolean;
}

export interface Chart {
  rows: string[];
  bars: Bar[];
  begin: number;
  end: number;
  open: boolean;
}

export function lookOf(span: RunSpan): BarLook {
  if (span.kind === 'backoff') return 'backoff';
  if (span.kind !== 'attempt') return 'idle';
  if (!span.to) return 'active';
  if (span.outcome === 'interrupted' || span.outcome === 'stopped' || span.outcome === 'cancelled') return 'cut';
  return span.outcome === 'done' || span.outcome === 'handed_off' || span.outcome === '' ? 'done' : 'failed';
}

/** Work that is no step: it looks at the run before, or plans what is to be undone. */
const rowNames: Record<string, string> = { '@watch': 'before', '@plan': 'closing' };

function rowOf(span: RunSpan, begun: boolean): string {
  if (span.kind === 'pause') return 'paused';
  const waits = span.kind === 'delay' || span.kind === 'wait' || span.kind === 'queue';
  return (waits && !begun) || !span.step ? 'before' : (rowNames[span.step] ?? span.step);
}

/** One row for each step, in the order of their first appearance; what a run waits for before its first attempt is
    on a row of its own. */
export function chartOf(spans: RunSpan[], now: number): Chart {
  const rows: string[] = [];
  let begun = false;
  const bars = spans.map((span): Bar => {
    begun ||= span.kind === 'attempt';
    const name = rowOf(span, begun);
    if (!rows.includes(name)) rows.push(name);
    const from = Date.parse(span.from);
    const to = Math.max(from, span.to ? Date.parse(span.to) : now);
    return { span, row: rows.indexOf(name), from, to, look: lookOf(span), open: !span.to };
  });
  const begin = Math.min(...bars.map((bar) => bar.from));
  const end = Math.max(begin + 1, ...bars.map((bar) => bar.to));
  return { rows, bars, begin, end, open: bars.some((bar) => bar.open) };
}

const kSecond = 1000;
const kMinute = 60 * kSecond;
const kHour = 60 * kMinute;
const kDay = 24 * kHour;
const paces = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((value) => value * kSecond),
  ...[1, 2, 5, 10, 15, 30].map((value) => value * kMinute),
  ...[1, 2, 3, 6, 12].map((value) => value * kHour),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((value) => value * kDay),
];

/** Where an axis over a length of time is marked: at most so many marks, at round times. */
export function ticksOf(length: number, most: number): { at: number; text: string }[] {
  const pace = paces.find((candidate) => length / candidate <= most) ?? Math.ceil(length / most / kDay) * kDay;
  const text = (at: number) => (at === 0 ? '0' : at < kMinute && length >= kSecond ? `${at / kSecond} s` : duration(at));
  const ticks = [];
  for (let at = 0; at <= length; at += pace) ticks.push({ at, text: text(at) });
  return ticks;
}

/** The waiting runs, next first. The server lists them in the order in which they came. */
export function queuedRuns(runs: Run[]): Run[] {
  return runs.filter((run) => run.status === 'queued').toSorted((one, other) => (other.priority ?? 0) - (one.priority ?? 0));
}
