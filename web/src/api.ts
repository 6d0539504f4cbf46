// SPDX-License-Identifier: Apache-2.0
// Calls of the server's API. Every refusal becomes a Problem, whose text is the server's.
import { store } from './store';
import type { Identity, Json, Role } from './types';

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly number: number,
    readonly title: string,
    readonly detail: string,
  ) {
    super(detail || title);
  }
}

/** Who uses the dashboard; undefined until the server has said it, null where a login is needed. */
export const identity = store<Identity | null | undefined>(undefined);

const ranks: Role[] = ['anyone', 'viewer', 'operator', 'admin'];

export function may(role: Role): boolean {
  const known = identity.get();
  return known != null && ranks.indexOf(known.role) >= ranks.indexOf(role);
}

/** Integers beyond what a JavaScript number holds stay what they are, where the browser tells their digits. */
export function parse(text: string): unknown {
  const exact = (_name: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
      ? BigInt(context?.source ?? '0')
      : value;
  return JSON.parse(text, exact as (name: string, value: unknown) => unknown);
}

function toProblem(status: number, text: string): Problem {
  try {
    const body = JSON.parse(text) as { code: string; number: number; title: string; detail: string };
    return new Problem(status, body.code, body.number, body.title, body.detail);
  } catch {
    return new Problem(status, 'unreadable', 0, `The server answered ${status}.`, text.slice(0, 200));
  }
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, more: Record<string, string> = {}): Promise<T> {
  const headers: Record<string, string> = { ...more };
  const init: RequestInit = { method, headers, cache: 'no-store', credentials: 'same-origin' };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  const csrf = identity.get()?.csrf;
  if (method !== 'GET' && csrf) headers['X-Pawl-CSRF'] = csrf;
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (failure) {
    if ((failure as Error).name === 'AbortError') throw failure;
    throw new Problem(0, 'unreachable', 0, 'The server cannot be reached.', 'It may be stopping or restarting.');
  }
  const text = await answer.text();
  if (answer.ok) return (text ? parse(text) : undefined) as T;
  const problem = toProblem(answer.status, text);
  if (answer.status === 401 && identity.get()?.role !== 'anyone' && !path.startsWith('/v1/login')) identity.set(null);
  throw problem;
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => call<T>('GET', path, undefined, signal);

/** The segments of a path, each encoded. */
export function at(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');
}

/** A query without its empty members; "" where none is left. */
export function query(members: Record<string, string | number | undefined>): string {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined && value !== '') made.set(name, String(value));
  }
  const text = made.toString();
  return text && `?${text}`;
}

/** JSON as the server reads it, also of integers that JavaScript does not hold. */
export function write(value: Json, indent = ''): string {
  const inner = `${indent}  `;
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Array.isArray(value)
    ? value.map((item) => inner + write(item, inner))
    : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${write(item, inner)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return members.length ? `${open}\n${members.join(',\n')}\n${indent}${close}` : `${open}${close}`;
}
