// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useReducer } from 'preact/hooks';

/** A value that components follow. */
export interface Store<T> {
  get(): T;
  set(value: T): void;
  follow(listener: () => void): () => void;
}

export function store<T>(first: T): Store<T> {
  let value = first;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    follow(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The store's value; the component is drawn again when it changes. It follows before the browser paints: what
    changes between the drawing and a later effect would be missed. */
export function useStore<T>(from: Store<T>): T {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => from.follow(() => redraw(undefined as never)), [from]);
  return from.get();
}
