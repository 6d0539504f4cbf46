// SPDX-License-Identifier: Apache-2.0
// The parts of the API's answers that the dashboard uses; /v1/openapi.json describes all of them.

export type Role = 'anyone' | 'viewer' | 'operator' | 'admin';
export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

export interface Identity {
  user: string;
  role: Role;
  csrf?: string;
}

export interface LoggedIn extends Identity {
  csrf: string;
  must_change_password: boolean;
}

export type Counts = Record<string, number>;

export interface StateInfo {
  name: string;
  terminal: boolean;
  recovers_to?: string;
}

export interface Transition {
  from: string;
  event: string;
  to: string;
  guarded: boolean;
  internal: boolean;
}

export interface Definition {
  name: string;
  initial: string;
  endless: boolean;
  schema: number;
  states: StateInfo[];
  events: string[];
  transitions: Transition[];
}

export interface Machine {
  name: string;
  definition: Definition;
  counts: Counts;
  instances: number;
}

export interface Timer {
  name: string;
  due: string;
  event: string;
}

export interface Work {
  number: number;
  name: string;
  attempt: number;
  not_before?: string;
}

export interface Instance {
  machine: string;
  key: string;
  id: string;
  state: string;
  finished: boolean;
  version: number;
  generation: number;
  seq: number;
  partition?: string;
  created_at: string;
  at: string;
  data: Json;
  legal: string[];
  timers: Timer[];
  work: Work[];
}

export interface InstancePage {
  instances: Instance[];
  next?: string;
}

export interface LogEntry {
  seq: number;
  cursor: string;
  at: string;
  kind: string;
  machine: string;
  key: string;
  id: string;
  event: string;
  payload?: Json;
  state: string;
  finished: boolean;
  version: number;
  generation: number;
  data?: Json;
}

export interface HistoryPage {
  events: LogEntry[];
  truncated: boolean;
  next?: number;
}

export interface SetTimer extends Timer {
  machine: string;
  key: string;
  state: string;
}

export interface Pool {
  name: string;
  size: number;
  granted: number;
  waiting: number;
}

export type RunState =
  | 'fresh'
  | 'delayed'
  | 'waiting'
  | 'running'
  | 'joining'
  | 'paused'
  | 'closing'
  | 'done'
  | 'handed_off'
  | 'aborted'
  | 'failed'
  | 'cancelled';

export interface FlowStep {
  name: string;
  remote: boolean;
  undo: boolean;
  finalizer: boolean;
}

export interface Flow {
  name: string;
  steps: FlowStep[];
  counts: Counts;
}

export interface RunRef {
  flow: string;
  id: string;
}

export interface Run extends RunRef {
  ulid: string;
  state: RunState;
  status: string;
  finished: boolean;
  generation: number;
  step: string;
  attempt: number;
  request: Json;
  response: Json;
  error?: string;
  kind?: 'system' | 'user';
  next_attempt?: string;
  queue?: string;
  priority?: number;
  not_before?: string;
  after?: RunRef & { on: string; ended?: string };
  parent?: RunRef;
  children?: (RunRef & { ended?: string })[];
  cleanup_errors?: string[];
  progress?: number;
  progress_text?: string;
  created_at: string;
  at: string;
}

export interface RunPage {
  runs: Run[];
  next?: string;
}

export interface RunSpan {
  kind: 'delay' | 'wait' | 'queue' | 'attempt' | 'backoff' | 'join' | 'pause';
  step: string;
  attempt: number;
  from: string;
  to?: string;
  outcome: string;
  error?: string;
}

export interface RunTimeline {
  run: Run;
  spans: RunSpan[];
  truncated: boolean;
}

export interface Stats {
  transitions: number;
  commits: number;
  refused: number;
  conflicts: number;
  instances: number;
  queue: number;
  timers: number;
  running_work: number;
  cached_bytes: number;
  last_seq: number;
  counts: Record<string, Counts>;
}

export interface System {
  name: string;
  summary: string;
  page?: { title: string; script: string };
}

export interface User {
  user: string;
  role: Role;
  one_time: boolean;
  at: string;
}

export interface Token {
  id: string;
  name: string;
  role: Role;
  by: string;
  created_at: string;
  expires?: string;
}
