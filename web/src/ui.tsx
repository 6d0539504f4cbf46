// SPDX-License-Identifier: Apache-2.0
// The parts that pages are made of.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from './api';
import { write } from './api';
import { ago, moment } from './format';
import { Icon, type IconName } from './icons';
import { machines, now } from './live';
import { Link } from './router';
import { useStore } from './store';
import type { Definition, Json, Run, RunRef } from './types';

let arrived = false;

/** The page's heading; the focus goes there when the page changes, so that it is read aloud. Not at the first one,
    where the browser begins at the top. */
export function Heading(props: { title: string; above?: ComponentChildren; children?: ComponentChildren; mono?: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = props.title === 'Overview' ? 'Pawl' : `${props.title} · Pawl`;
    if (arrived && (document.activeElement === document.body || document.activeElement?.closest('nav'))) heading.current?.focus();
    arrived = true;
  }, [props.title]);
  return (
    <header class="heading">
      <div class="heading-text">
        {props.above && <div class="above">{props.above}</div>}
        <h1 ref={heading} tabIndex={-1} class={props.mono ? 'mono' : undefined}>
          {props.title}
        </h1>
      </div>
      {props.children && <div class="heading-actions">{props.children}</div>}
    </header>
  );
}

export function Card(props: { title?: string; aside?: ComponentChildren; flush?: boolean; class?: string; children: ComponentChildren }) {
  return (
    <section class={`card ${props.flush ? 'flush' : ''} ${props.class ?? ''}`} aria-label={props.title}>
      {props.title && (
        <header class="card-head">
          <h2>{props.title}</h2>
          {props.aside && <div class="card-aside">{props.aside}</div>}
        </header>
      )}
      {props.children}
    </section>
  );
}

export function Empty(props: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={props.icon} />
      <strong>{props.title}</strong>
      {props.children && <p>{props.children}</p>}
    </div>
  );
}

export function Refusal({ problem, children }: { problem: Problem; children?: ComponentChildren }) {
  return (
    <div class="refusal" role="alert">
      <Icon name="warning" />
      <div>
        <strong>{problem.title}</strong>
        {problem.detail && problem.detail !== problem.title && <p>{problem.detail}</p>}
        {problem.number > 0 && (
          <p class="quiet mono">
            PAWL-{problem.number} {problem.code}
          </p>
        )}
        {children}
      </div>
    </div>
  );
}

export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} />
      ))}
    </div>
  );
}

export function Ago({ time }: { time: string }) {
  return (
    <time dateTime={time} title={moment(time)}>
      {ago(time, useStore(now))}
    </time>
  );
}

/** Running states have hues of their own, finished ones are grey. */
export function tint(definition: Definition | undefined, state: string): { class: string; style: Record<string, string> } {
  const found = definition?.states.find((known) => known.name === state);
  if (!definition || !found) return { class: 'tint grey', style: {} };
  const alike = definition.states.filter((known) => known.terminal === found.terminal);
  const place = alike.indexOf(found);
  if (found.terminal) return { class: 'tint grey', style: { '--step': String(place * Math.min(1, 3 / alike.length)) } };
  const step = Math.min(36, 220 / Math.max(1, alike.length));
  return { class: 'tint', style: { '--hue': String((272 - place * step + 360) % 360) } };
}

export function useDefinition(machine: string): Definition | undefined {
  return useStore(machines)?.find((known) => known.name === machine)?.definition;
}

export function StateBadge({ machine, state }: { machine: string; state: string }) {
  const look = tint(useDefinition(machine), state);
  return (
    <span class="state">
      <i class={look.class} style={look.style} />
      {state}
    </span>
  );
}

export function instancePath(machine: string, key: string): string {
  return `/instances/${encodeURIComponent(machine)}/${encodeURIComponent(key)}`;
}

export function KeyLink({ machine, name }: { machine: string; name: string }) {
  return (
    <Link to={instancePath(machine, name)} class="mono key">
      {name || '(empty)'}
    </Link>
  );
}

export function runPath(run: RunRef): string {
  return `/runs/${encodeURIComponent(run.flow)}/${encodeURIComponent(run.id)}`;
}

export function RunLink({ run, withFlow }: { run: RunRef; withFlow?: boolean }) {
  return (
    <Link to={runPath(run)} class="mono key">
      {withFlow && <span class="quiet">{run.flow}/</span>}
      {run.id}
    </Link>
  );
}

/** The status of a run in the colour of its state. */
export function RunChip({ run }: { run: Pick<Run, 'flow' | 'state' | 'status'> }) {
  const look = tint(useDefinition(run.flow), run.state);
  const bad = run.state === 'failed' || run.state === 'aborted';
  return (
    <span class={`chip ${bad ? 'bad' : ''}`} title={run.status === run.state ? undefined : `state ${run.state}`}>
      <i class={look.class} style={look.style} />
      {run.status.replaceAll('_', ' ')}
    </span>
  );
}

/** How far a step is, from 0 to 1. */
export function ProgressBar({ value, label }: { value: number; label: string }) {
  const percent = Math.round(Math.min(1, Math.max(0, value)) * 100);
  return (
    <div class="bar progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}>
      {percent > 0 && <i class="tint" style={{ flex: `0 0 ${percent}%` }} />}
    </div>
  );
}

export function NoFlows() {
  return (
    <Empty icon="runs" title="No flows yet">
      A flow is a list of durable steps. Programs add flows with <code>Flows::add</code>; <code>--demo</code> has one. See docs/concepts/flow.md.
    </Empty>
  );
}

/** JSON with its kinds told apart. */
export function JsonView({ value, indent = 0 }: { value: Json; indent?: number }) {
  const pad = '  '.repeat(indent + 1);
  if (value === null || typeof value === 'boolean') return <span class="j-word">{String(value)}</span>;
  if (typeof value === 'number' || typeof value === 'bigint') return <span class="j-number">{String(value)}</span>;
  if (typeof value === 'string') return <span class="j-string">{JSON.stringify(value)}</span>;
  const list = Array.isArray(value);
  const members: [string, Json][] = list ? value.map((item) => ['', item]) : Object.entries(value);
  if (members.length === 0) return <span class="j-mark">{list ? '[]' : '{}'}</span>;
  return (
    <>
      <span class="j-mark">{list ? '[' : '{'}</span>
      {'\n'}
      {members.map(([name, item], index) => (
        <>
          {pad}
          {!list && (
            <>
              <span class="j-name">{name}</span>
              <span class="j-mark">: </span>
            </>
          )}
          <JsonView value={item} indent={indent + 1} />
          {index < members.length - 1 && <span class="j-mark">,</span>}
          {'\n'}
        </>
      ))}
      {'  '.repeat(indent)}
      <span class="j-mark">{list ? ']' : '}'}</span>
    </>
  );
}

export function Code({ value }: { value: Json }) {
  return (
    <pre class="code" tabIndex={0} aria-label="JSON">
      <JsonView value={value} />
    </pre>
  );
}

/** One line of JSON, shortened. */
export function brief(value: Json | undefined): string {
  if (value === undefined) return '—';
  const text = write(value).replace(/\s*\n\s*/g, ' ');
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** As a ref: where typing goes on. Browsers honour `autofocus` only once, and in dialogs. */
export function takeFocus(element: HTMLElement | null): void {
  element?.focus();
}

export function Field(props: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      {props.children}
      {props.hint && <small>{props.hint}</small>}
    </label>
  );
}

export function Select(props: {
  label: string;
  value: string;
  options: (string | [string, string])[];
  any?: string;
  onChange(value: string): void;
}) {
  return (
    <label class="select">
      <span class="sr">{props.label}</span>
      <select aria-label={props.label} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.any && <option value="">{props.any}</option>}
        {props.options.map((option) => {
          const [value, text] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={value} value={value} selected={value === props.value}>
              {text}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** Choices beside each other, of which one holds. */
export function Segments(props: { label: string; value: string; options: [string, string][]; onChange(value: string): void }) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === props.value} onClick={() => props.onChange(value)}>
          {text}
        </button>
      ))}
    </div>
  );
}

const kPause = 200;

/** A text that is told after a pause in typing. What is typed is its own until then: pages are drawn again while
    somebody types. What the address says instead, as after the way back, comes before what is typed. */
export function Search(props: { label: string; value: string; onChange(value: string): void }) {
  const [typed, setTyped] = useState(props.value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const told = useRef(props.value);
  const tell = useRef(props.onChange);
  tell.current = props.onChange;
  useEffect(() => {
    if (props.value === told.current) return;
    clearTimeout(timer.current);
    told.current = props.value;
    setTyped(props.value);
  }, [props.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={props.label}
        placeholder={props.label}
        value={typed}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => {
          const { value } = event.currentTarget;
          setTyped(value);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => {
            told.current = value;
            tell.current(value);
          }, kPause);
        }}
      />
    </label>
  );
}

/** A window of its own, closed by Escape, its button or what is done in it. */
export function Dialog(props: { title: string; open: boolean; onClose(): void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (props.open && !element?.open) element?.showModal();
    if (!props.open && element?.open) element.close();
  }, [props.open]);
  return (
    <dialog ref={dialog} onClose={props.onClose} aria-label={props.title}>
      {props.open && (
        <div class="dialog">
          <header class="card-head">
            <h2>{props.title}</h2>
            <button type="button" class="plain icon-button" aria-label="Close" onClick={props.onClose}>
              <Icon name="close" />
            </button>
          </header>
          {props.children}
        </div>
      )}
    </dialog>
  );
}

/** A form's way to the server: one at a time, and its refusal. */
export function useAction<T extends unknown[]>(run: (...args: T) => Promise<void>): {
  busy: boolean;
  problem: Problem | undefined;
  start(...args: T): void;
  clear(): void;
} {
  const [state, setState] = useState<{ busy: boolean; problem?: Problem }>({ busy: false });
  return {
    busy: state.busy,
    problem: state.problem,
    start: (...args) => {
      setState({ busy: true });
      run(...args).then(
        () => setState({ busy: false }),
        (problem: Problem) => setState({ busy: false, problem }),
      );
    },
    clear: () => setState({ busy: false }),
  };
}

/** A part that is loaded when it is first shown. */
export function useModule<T>(load: () => Promise<{ default: T }>): T | undefined {
  const [loaded, setLoaded] = useState<{ part: T }>();
  useEffect(() => {
    let gone = false;
    void load().then((module) => {
      if (!gone) setLoaded({ part: module.default });
    });
    return () => {
      gone = true;
    };
  }, []);
  return loaded?.part;
}
