// SPDX-License-Identifier: Apache-2.0
import { store } from './store';

export type Theme = 'auto' | 'light' | 'dark';

function read(): Theme {
  try {
    const kept = localStorage.getItem('pawl-theme');
    return kept === 'light' || kept === 'dark' ? kept : 'auto';
  } catch {
    return 'auto'; // a browser that keeps nothing
  }
}

export const theme = store<Theme>(read());

function apply(): void {
  document.documentElement.dataset.theme = theme.get();
}
apply();
theme.follow(apply);

export function setTheme(value: Theme): void {
  theme.set(value);
  try {
    localStorage.setItem('pawl-theme', value);
  } catch {
    // It holds until the page is left.
  }
}

/** Drawings on a canvas do not follow the style sheet; they ask for its colours, and again when they change. */
export function onColours(changed: () => void): () => void {
  const media = matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', changed);
  const unfollow = theme.follow(changed);
  return () => {
    media.removeEventListener('change', changed);
    unfollow();
  };
}

/** The colour that a class gives its text. */
export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.className = name;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
