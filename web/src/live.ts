// SPDX-License-Identifier: Apache-2.0
// What changes by itself: counters that are asked for every second, and the log as it is written.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, call, get, identity, parse, query } from './api';
import { store } from './store';
import type { Flow, Identity, LogEntry, Machine, Stats, System } from './types';

export interface Sample {
  at: number; // seconds
  rate: number; // transitions per second
}

export const stats = store<Stats | undefined>(undefined);
export const machines = store<Machine[] | undefined>(undefined);
export const systems = store<System[] | undefined>(undefined);
export const flows = store<Flow[] | undefined>(undefined);
export const samples = store<Sample[]>([]);
export const reachable = store(true);
export const now = store(Date.now());

const kSamples = 300;
const kPace = 1000;

let last: { at: number; transitions: number } | undefined;

function sample(fresh: Stats): void {
  const at = performance.now() / 1000;
  if (last && fresh.transitions >= last.transitions && at > last.at) {
    const rate = (fresh.transitions - last.transitions) / (at - last.at);
    samples.set([...samples.get().slice(1 - kSamples), { at: Date.now() / 1000, rate }]);
  }
  last = { at, transitions: fresh.transitions };
}

async function look(): Promise<void> {
  now.set(Date.now());
  if (document.hidden || !identity.get() || identity.get()?.role === 'anyone') return;
  try {
    const fresh = await get<Stats>('/v1/stats');
    sample(fresh);
    stats.set(fresh);
    reachable.set(true);
  } catch (failure) {
    if (failure instanceof Problem && failure.status !== 401) reachable.set(false);
    last = undefined;
  }
}

/** What the log says of the time before this page was opened, so that the chart does not begin empty. */
function lookBack(): void {
  const kBin = 2; // seconds
  const found: number[] = [];
  const done = () => {
    clearTimeout(timer);
    stop();
    const first = Math.min(...found);
    const begun = samples.get()[0]?.at ?? Date.now() / 1000;
    const past: Sample[] = [];
    // The first bin is only partly in what was read.
    for (let at = first + kBin; at < begun; at += kBin) {
      past.push({ at, rate: found.filter((time) => time > at - kBin && time <= at).length / kBin });
    }
    samples.set([...past.slice(-kSamples / 2), ...samples.get()]);
  };
  const timer = setTimeout(done, 1500);
  const until = stats.get()?.last_seq ?? 0;
  const stop = followLog({}, { recent: 1000 }, {
    entry(entry) {
      const at = Date.parse(entry.at) / 1000;
      if (at > Date.now() / 1000 - 120) found.push(at);
      if (entry.seq >= until) done();
    },
  });
}

let running = false;

/** Asks again a second after the last answer, so that a slow server is not asked faster than it answers. */
export function beginLooking(): void {
  if (running) return;
  running = true;
  const step = () => look().finally(() => setTimeout(() => void step(), kPace));
  void step().then(lookBack);
}

/** A program without flows has no routes for them either, so they are asked for where a machine is that of one. */
function isOfFlow({ definition }: Machine): boolean {
  return definition.initial === 'fresh' && definition.states.some((state) => state.name === 'handed_off');
}

/** What does not change while the server runs. */
export async function loadStructure(): Promise<void> {
  const [known, running] = await Promise.all([
    get<{ machines: Machine[] }>('/v1/machines'),
    get<{ systems: System[] }>('/v1/systems'),
  ]);
  machines.set(known.machines);
  systems.set(running.systems);
  flows.set(known.machines.some(isOfFlow) ? (await get<{ flows: Flow[] }>('/v1/flows')).flows : []);
}

export async function learnIdentity(): Promise<void> {
  const known = await call<Identity>('GET', '/v1/me');
  // Somebody with a login and without a role has a one-time password, which must be changed first.
  identity.set(known.role === 'anyone' && !known.csrf ? null : known);
}

export interface Filter {
  machine?: string;
  key?: string;
  state?: string;
  kind?: string;
}

export type FeedStatus = 'connecting' | 'live' | 'waiting' | 'refused';

export interface FeedHandlers {
  entry(entry: LogEntry): void;
  status?(status: FeedStatus): void;
  skipped?(): void;
}

const kinds = ['created', 'fired', 'recovery', 'work', 'timer', 'message'];

// A browser opens six connections to a server, for all its tabs: one that is not looked at gives its own back. Not at
// once, because a glance at another tab is short.
const kHidden = 3000;

/** Follows the log behind `after`, or from the last `recent` entries on. The browser reconnects with
    Last-Event-ID, so that nothing is missed; where the reader was too slow, it goes on from now. While the page is
    hidden, the log is left alone; what was written meanwhile follows when it is seen again. */
export function followLog(filter: Filter, start: { after?: string; recent?: number }, on: FeedHandlers): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let cursor = start.after ?? '';

  const open = (recent: number) => {
    on.status?.('connecting');
    source?.close();
    source = new EventSource(`/v1/events${query({ ...filter, after: cursor, recent: cursor ? 0 : recent })}`);
    source.onopen = () => on.status?.('live');
    for (const kind of kinds) {
      source.addEventListener(kind, (event) => {
        cursor = event.lastEventId;
        on.entry(parse(event.data as string) as LogEntry);
      });
    }
    source.addEventListener('end', (event) => {
      const lagged = (JSON.parse((event as MessageEvent<string>).data) as { code: string }).code === 'subscriber_lagged';
      source?.close();
      if (lagged) {
        cursor = '';
        on.skipped?.();
      }
      again(lagged ? 500 : 2000);
    });
    source.onerror = () => {
      on.status?.('waiting');
      // Where the browser gives up, for example because the login has ended or the cursor is too old.
      if (source?.readyState === EventSource.CLOSED) void refused();
    };
  };

  const again = (pause: number) => {
    if (closed || asleep) return;
    on.status?.('waiting');
    clearTimeout(timer);
    timer = setTimeout(() => open(0), pause);
  };

  const refused = async () => {
    source?.close();
    if (closed) return;
    try {
      await get('/v1/stats');
      if (cursor) on.skipped?.();
      cursor = '';
    } catch (failure) {
      if (failure instanceof Problem && failure.status === 401) {
        on.status?.('refused');
        return;
      }
    }
    again(2000);
  };

  let hiding: ReturnType<typeof setTimeout> | undefined;
  let asleep = false;
  const sleep = () => {
    asleep = true;
    clearTimeout(timer);
    source?.close();
  };
  const wake = () => {
    asleep = false;
    // Without an entry there is no cursor to go on from; who did not ask for the past is told that some may be missing.
    if (!cursor && !start.recent) on.skipped?.();
    open(start.recent ?? 0);
  };
  const turned = () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(sleep, kHidden);
    else if (asleep) wake();
  };

  open(start.recent ?? 0);
  turned();
  document.addEventListener('visibilitychange', turned);
  return () => {
    closed = true;
    document.removeEventListener('visibilitychange', turned);
    clearTimeout(hiding);
    clearTimeout(timer);
    source?.close();
  };
}

export interface Resource<T> {
  data: T | undefined;
  error: Problem | undefined;
  /** Asks at once, whatever is awaited. */
  reload(): void;
  /** Asks soon: not while an answer is awaited, and not faster than a few times a second. */
  touch(): void;
}

const kSoon = 200;

/** Loads when `key` changes, and again every so many milliseconds; what was loaded stays while it is asked again.
    An empty key loads nothing. */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 0): Resource<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: Problem }>({ key });
  const [round, setRound] = useState(0);
  const loading = useRef(load);
  loading.current = load;
  const touched = useRef(() => {});
  useEffect(() => {
    if (!key) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let refused = false;
    let busy = false;
    let stale = false;
    let begun = false;
    let missed = false;
    let last = 0;
    const later = (pause: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => void step(), pause);
    };
    touched.current = () => {
      if (busy) stale = true;
      else later(Math.max(0, last + kSoon - Date.now()));
    };
    const step = async () => {
      busy = true;
      stale = false;
      refused = false;
      try {
        missed = document.hidden && begun;
        begun = true;
        if (!missed) {
          const data = await loading.current(abort.signal);
          if (!abort.signal.aborted) setState({ key, data });
        }
      } catch (failure) {
        if (abort.signal.aborted) return;
        const error =
          failure instanceof Problem ? failure : new Problem(0, 'internal', 0, 'The page failed.', String(failure));
        // What the server refuses it refuses again; what it could not do it may do later.
        refused = error.status >= 400 && error.status < 500;
        setState((before) => ({ key, error, ...(before.key === key && before.data ? { data: before.data } : {}) }));
      }
      busy = false;
      last = Date.now();
      if (abort.signal.aborted) return;
      if (stale) later(kSoon);
      else if (every && !refused) later(every);
    };
    // A hidden page asks for nothing, and catches up when it is seen.
    const turned = () => {
      if (!document.hidden && missed) touched.current();
    };
    document.addEventListener('visibilitychange', turned);
    void step();
    return () => {
      abort.abort();
      document.removeEventListener('visibilitychange', turned);
      touched.current = () => {};
      clearTimeout(timer);
    };
  }, [key, every, round]);
  const current = state.key === key;
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    reload: () => setRound((before) => before + 1),
    touch: () => touched.current(),
  };
}

/** Calls when the log tells of something that fits, and when listening begins: what happened between loading and that
    is told by nobody. Where no filter holds exactly what is wanted, `fits` chooses. */
export function useLog(filter: Filter, changed: () => void, fits: (entry: LogEntry) => boolean = () => true): void {
  const handlers = useRef({ changed, fits });
  handlers.current = { changed, fits };
  const { machine = '', key = '' } = filter;
  useEffect(
    () =>
      followLog(filter, {}, {
        entry: (entry) => handlers.current.fits(entry) && handlers.current.changed(),
        status: (status) => status === 'live' && handlers.current.changed(),
        skipped: () => handlers.current.changed(),
      }),
    [machine, key],
  );
}
