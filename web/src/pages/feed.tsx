// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from 'preact/hooks';
import { clockTime, count } from '../format';
import { Icon } from '../icons';
import { type FeedStatus, followLog, machines } from '../live';
import { Link, refine, usePlace } from '../router';
import { useStore } from '../store';
import type { LogEntry } from '../types';
import { Card, Code, Empty, Heading, KeyLink, Search, Select, StateBadge } from '../ui';

const kRows = 300;
const kRecent = 200;

const kinds = ['created', 'fired', 'work', 'timer', 'message', 'recovery'];

type Row = LogEntry | { seq: number; gap: true };

const statusText: Record<FeedStatus, string> = {
  connecting: 'Connecting',
  live: 'Live',
  waiting: 'Reconnecting',
  refused: 'Refused',
};

function Entry({ entry }: { entry: LogEntry }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <tr>
        <td class="quiet number">
          <button type="button" class="plain twist" aria-expanded={open} aria-label={`Details of entry ${entry.seq}`} onClick={() => setOpen(!open)} />
          <time dateTime={entry.at}>{clockTime(entry.at)}</time>
        </td>
        <td class="spare">
          <Link to={`/machines/${encodeURIComponent(entry.machine)}`}>{entry.machine}</Link>
        </td>
        <td class="feed-key">
          <KeyLink machine={entry.machine} name={entry.key} />
        </td>
        <td class="feed-event">
          {entry.event || <span class="quiet">{entry.kind}</span>}
          {entry.kind !== 'fired' && entry.event && entry.event !== entry.kind && <span class="tag">{entry.kind}</span>}
        </td>
        <td>
          <StateBadge machine={entry.machine} state={entry.state} />
        </td>
      </tr>
      {open && (
        <tr class="opened">
          <td colSpan={5}>
            <div class="two">
              {entry.payload !== undefined && (
                <div>
                  <h3>Payload</h3>
                  <Code value={entry.payload} />
                </div>
              )}
              {entry.data !== undefined && (
                <div>
                  <h3>Data after the event</h3>
                  <Code value={entry.data} />
                </div>
              )}
            </div>
          </td>
        </tr>
      )}
    </>
  );
}

export function FeedPage() {
  const place = usePlace();
  const known = useStore(machines);
  const [machine, key, state, kind] = ['machine', 'key', 'state', 'kind'].map((name) => place.query.get(name) ?? '') as [string, string, string, string];
  const [rows, setRows] = useState<Row[]>([]);
  const [status, setStatus] = useState<FeedStatus>('connecting');
  const [paused, setPaused] = useState(false);
  const [total, setTotal] = useState(0);
  const cursor = useRef('');
  const filter = JSON.stringify([machine, key, state, kind]);

  // A new filter starts again; after a pause the feed continues where it was.
  useEffect(() => {
    cursor.current = '';
    setRows([]);
    setTotal(0);
  }, [filter]);
  useEffect(() => {
    if (paused) return undefined;
    let waiting: Row[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const add = (row: Row) => {
      waiting.push(row);
      timer ??= setTimeout(() => {
        const fresh = waiting.reverse();
        waiting = [];
        timer = undefined;
        setRows((before) => [...fresh, ...before].slice(0, kRows));
        setTotal((before) => before + fresh.length);
      }, 100);
    };
    const stop = followLog({ machine, key, state, kind }, { after: cursor.current, recent: kRecent }, {
      entry(entry) {
        cursor.current = entry.cursor;
        add(entry);
      },
      status: setStatus,
      skipped: () => add({ seq: -Date.now(), gap: true }),
    });
    return () => {
      stop();
      clearTimeout(timer);
      // What arrived and was not drawn yet is not lost by a pause.
      if (waiting.length) setRows((before) => [...waiting.reverse(), ...before].slice(0, kRows));
    };
  }, [filter, paused]);

  const states = known?.find((candidate) => candidate.name === machine)?.definition.states ?? [];
  return (
    <>
      <Heading title="Live feed">
        <span class={`live ${paused ? 'paused' : status}`} role="status">
          {paused ? 'Paused' : statusText[status]}
        </span>
        <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          <Icon name={paused ? 'play' : 'pause'} />
          {paused ? 'Resume' : 'Pause'}
        </button>
      </Heading>
      <Card flush>
        <div class="filters" role="search">
          <Select label="Machine" any="All machines" value={machine} options={known?.map(({ name }) => name) ?? []} onChange={(value) => refine(place, { machine: value, state: '', ...(value ? {} : { key: '' }) })} />
          {machine && <Select label="State" any="All states" value={state} options={states.map(({ name }) => name)} onChange={(value) => refine(place, { state: value })} />}
          <Select label="Kind" any="All kinds" value={kind} options={kinds} onChange={(value) => refine(place, { kind: value })} />
          {machine && <Search label="Key" value={key} onChange={(value) => refine(place, { key: value })} />}
          <span class="quiet number filters-end">{count(total)} entries</span>
        </div>
        {rows.length === 0 && (
          <Empty icon="feed" title={status === 'live' ? 'No entries yet' : statusText[status]}>
            Entries appear here as soon as they are durable.
          </Empty>
        )}
        {rows.length > 0 && (
          <div class="table-place">
            <table class="feed">
              <thead>
                <tr>
                  <th>Time</th>
                  <th class="spare">Machine</th>
                  <th>Key</th>
                  <th>Event</th>
                  <th>State</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) =>
                  'gap' in row ? (
                    <tr key={row.seq}>
                      <td colSpan={5} class="gap">
                        Entries are missing here: they arrived faster than this page could read them
                      </td>
                    </tr>
                  ) : (
                    <Entry key={row.seq} entry={row} />
                  ),
                )}
              </tbody>
            </table>
          </div>
        )}
      </Card>
    </>
  );
}
