// SPDX-License-Identifier: Apache-2.0

const whole = new Intl.NumberFormat('en-GB');
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const date = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

export const count = (value: number): string => whole.format(value);

export function rate(value: number): string {
  if (value >= 100) return whole.format(Math.round(value));
  return value.toFixed(value >= 10 ? 0 : 1);
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** A length of time in its largest unit: 840 ms, 12 s, 3 min, 5 h, 9 d. */
export function span(milliseconds: number): string {
  const steps: [number, string][] = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ];
  for (const [size, unit] of steps) {
    if (milliseconds >= size) return `${Math.floor(milliseconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.round(milliseconds))} ms`;
}

/** A length of time as exactly as a person needs it: 84 ms, 1.24 s, 3 min 12 s, 5 h 2 min, 9 d 4 h. */
export function duration(milliseconds: number): string {
  const whole = Math.max(0, Math.round(milliseconds));
  if (whole < 1000) return `${whole} ms`;
  if (whole < 60_000) return `${(whole / 1000).toFixed(whole < 10_000 ? 2 : 1)} s`;
  const units: [number, string, number, string][] = [
    [86_400_000, 'd', 3_600_000, 'h'],
    [3_600_000, 'h', 60_000, 'min'],
    [60_000, 'min', 1000, 's'],
  ];
  const [size, unit, smaller, rest] = units.find(([least]) => whole >= least) ?? [60_000, 'min', 1000, 's'];
  const left = Math.floor((whole % size) / smaller);
  return `${Math.floor(whole / size)} ${unit}${left ? ` ${left} ${rest}` : ''}`;
}

export function ago(time: string, now: number): string {
  const passed = now - Date.parse(time);
  if (passed < 0) return passed > -2000 ? 'now' : `in ${span(-passed)}`;
  return passed < 1000 ? 'now' : `${span(passed)} ago`;
}

export function due(time: string, now: number): string {
  const left = Date.parse(time) - now;
  return left > 0 ? `in ${left < 1000 ? '1 s' : span(left)}` : 'now';
}

export function moment(time: string): string {
  const parsed = new Date(time);
  return `${date.format(parsed)}, ${clock.format(parsed)}`;
}

/** 14:03:07.125 */
export function clockTime(time: string): string {
  const parsed = new Date(time);
  return `${clock.format(parsed)}.${String(parsed.getMilliseconds()).padStart(3, '0')}`;
}
