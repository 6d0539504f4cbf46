// SPDX-License-Identifier: Apache-2.0
// A system's page: a module of its own, which is given a place and a host. docs/dashboard.md describes both.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, call, get, identity, may } from '../api';
import { type Filter, followLog, systems } from '../live';
import { Link, go } from '../router';
import { useStore } from '../store';
import type { LogEntry, Role } from '../types';
import { Empty, Heading, Refusal, Skeleton } from '../ui';

export interface Host {
  system: string;
  user: string;
  role: Role;
  may(role: Role): boolean;
  get(path: string): Promise<unknown>;
  send(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown>;
  follow(filter: Filter & { recent?: number }, entry: (entry: LogEntry) => void): () => void;
  go(path: string): void;
}

type Show = (place: HTMLElement, host: Host) => void | (() => void) | Promise<void | (() => void)>;

function hostFor(system: string, onLeaving: (stop: () => void) => void): Host {
  return {
    system,
    user: identity.get()?.user ?? '',
    role: identity.get()?.role ?? 'anyone',
    may,
    get: (path) => get(path),
    send: (method, path, body) => call(method, path, body),
    follow({ recent = 0, ...filter }, entry) {
      const stop = followLog(filter, { recent }, { entry });
      onLeaving(stop);
      return stop;
    },
    go: (path) => go(path),
  };
}

function Place({ system, script }: { system: string; script: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<Problem>();
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const element = place.current;
    const leaving: (() => void)[] = [];
    let gone = false;
    const show = async () => {
      const module = (await import(/* @vite-ignore */ script)) as { default?: Show };
      if (typeof module.default !== 'function') throw new Error(`${script} has no function as its default export`);
      if (gone || !element) return;
      const stop = await module.default(element, hostFor(system, (end) => leaving.push(end)));
      if (typeof stop === 'function') leaving.push(stop);
      if (gone) for (const end of leaving) end();
      setShown(true);
    };
    show().catch((failure: Error) =>
      setProblem(failure instanceof Problem ? failure : new Problem(0, 'page_failed', 0, `The page of ${system} failed.`, failure.message)),
    );
    return () => {
      gone = true;
      for (const end of leaving) end();
      element?.replaceChildren();
    };
  }, [system, script]);
  return (
    <>
      {problem && <Refusal problem={problem} />}
      {!problem && !shown && <Skeleton lines={5} />}
      <div ref={place} class="system-page stack" />
    </>
  );
}

export function SystemPage({ name }: { name: string }) {
  const known = useStore(systems);
  const system = known?.find((candidate) => candidate.name === name);
  if (!known) return <Skeleton lines={6} />;
  if (!system?.page) {
    return (
      <>
        <Heading title={name} />
        <Empty icon="page" title={system ? `${name} has no page` : `There is no system ${name}`}>
          <Link to="/">Go to the overview</Link>
        </Empty>
      </>
    );
  }
  return (
    <>
      <Heading title={system.page.title} above={name} />
      <Place system={name} script={system.page.script} />
    </>
  );
}
