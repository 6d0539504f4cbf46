// SPDX-License-Identifier: Apache-2.0
import type { Json } from './types';

export interface Change {
  path: string;
  before?: Json;
  after?: Json;
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || typeof a !== 'object' || typeof b !== 'object') return false;
  if (a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.entries(a);
  const right = b as { [name: string]: Json };
  return left.length === Object.keys(right).length && left.every(([name, value]) => same(value, right[name]));
}

/** What differs, by path; lists are compared as a whole. */
export function changes(before: Json | undefined, after: Json | undefined, path = ''): Change[] {
  if (same(before, after)) return [];
  if (!isObject(before) || !isObject(after)) {
    const change: Change = { path };
    if (before !== undefined) change.before = before;
    if (after !== undefined) change.after = after;
    return [change];
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => changes(before[name], after[name], path ? `${path}.${name}` : name));
}
