// SPDX-License-Identifier: Apache-2.0
// Addresses inside the page, by the History API.
import type { ComponentChildren, JSX } from 'preact';
import { store, useStore } from './store';

const here = store(location.pathname + location.search);
addEventListener('popstate', () => here.set(location.pathname + location.search));

/** `state` is what the browser keeps with the address. */
export function go(to: string, replace = false, state: unknown = null): void {
  if (replace) history.replaceState(state, '', to);
  else history.pushState(state, '', to);
  here.set(location.pathname + location.search);
  if (!replace) scrollTo(0, 0);
}

export interface Place {
  path: string;
  query: URLSearchParams;
  whole: string;
}

export function usePlace(): Place {
  const whole = useStore(here);
  const [path = '/', search = ''] = whole.split('?');
  return { path, query: new URLSearchParams(search), whole };
}

function varied(place: Place, changes: Record<string, string>): string {
  const next = new URLSearchParams(place.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  return place.path + (text && `?${text}`);
}

/** The same page with other filters, which begins at the first page of the list again. */
export function refine(place: Place, changes: Record<string, string>): void {
  go(varied(place, { cursor: '', ...changes }), true);
}

/** Another page of the list with the same filters. An empty cursor is the first. */
export function turnTo(place: Place, cursor: string): void {
  go(varied(place, { cursor }), false, cursor ? { turned: true } : null);
}

/** Whether the way back leads to the page of the list before this one. */
export function wasTurned(): boolean {
  return Boolean((history.state as { turned?: boolean } | null)?.turned);
}

/** The decoded parameters where the path fits the pattern, such as /machines/:machine. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? '';
    if (!part.startsWith(':')) {
      if (part !== value) return null;
      continue;
    }
    try {
      found[part.slice(1)] = decodeURIComponent(value);
    } catch {
      return null;
    }
    if (!value) return null;
  }
  return found;
}

type LinkProps = JSX.HTMLAttributes<HTMLAnchorElement> & { to: string; children: ComponentChildren };

/** A click that asks for a new tab or window is the browser's. */
export function follow(event: MouseEvent, to: string): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(to);
}

export function Link({ to, children, ...rest }: LinkProps) {
  return (
    <a {...rest} href={to} onClick={(event) => follow(event, to)}>
      {children}
    </a>
  );
}
