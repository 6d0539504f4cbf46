// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, at, call, may } from '../api';
import type { Step } from '../diagram';
import { clockTime, count } from '../format';
import { Icon } from '../icons';
import { flows, followLog, machines, stats } from '../live';
import { Link, go } from '../router';
import { useStore } from '../store';
import type { Definition, Instance, LogEntry } from '../types';
import { Card, Dialog, Empty, Field, Heading, KeyLink, Refusal, Skeleton, StateBadge, instancePath, useAction, useModule } from '../ui';

const kShown = 40;
const kMoving = 24;
const kTravel = 900;

interface Seen extends LogEntry {
  from: string | undefined;
}

/** The newest entries of a machine, and those of the last moment, which the diagram moves. An entry does not say
    which state was left; where the instance was seen before, it is known. */
function useSteps(machine: string): { seen: Seen[]; moving: Step[] } {
  const [shown, setShown] = useState<{ seen: Seen[]; moving: Step[] }>({ seen: [], moving: [] });
  const states = useRef(new Map<string, string>());
  useEffect(() => {
    const begun = Date.now();
    let waiting: Seen[] = [];
    const timers = new Set<ReturnType<typeof setTimeout>>();
    const later = (pause: number, run: () => void) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        run();
      }, pause);
      timers.add(timer);
    };
    // Many entries in one moment are one drawing.
    const show = () => {
      const fresh = waiting.reverse();
      waiting = [];
      const steps = fresh
        .filter((entry) => Date.parse(entry.at) > begun - 1000)
        .slice(0, kMoving)
        .map((entry) => ({ number: entry.seq, event: entry.event, from: entry.from, to: entry.state }));
      setShown((before) => ({ seen: [...fresh, ...before.seen].slice(0, kShown), moving: [...before.moving, ...steps].slice(-kMoving) }));
      later(kTravel, () =>
        setShown((before) => ({ ...before, moving: before.moving.filter((step) => !steps.some((done) => done.number === step.number)) })),
      );
    };
    const stop = followLog({ machine }, { recent: 300 }, {
      entry(entry) {
        const from = entry.kind === 'created' ? undefined : states.current.get(entry.id);
        if (entry.finished) states.current.delete(entry.id);
        else states.current.set(entry.id, entry.state);
        if (states.current.size > 5000) states.current.clear();
        if (waiting.length === 0) later(100, show);
        if (waiting.length >= 200) waiting.shift();
        waiting.push({ ...entry, from });
      },
    });
    return () => {
      stop();
      for (const timer of timers) clearTimeout(timer);
    };
  }, [machine]);
  return shown;
}

function Begin({ machine }: { machine: string }) {
  const [open, setOpen] = useState(false);
  const [key, setKey] = useState('');
  const [data, setData] = useState('{}');
  const create = useAction(async () => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(data);
    } catch (failure) {
      throw new Problem(0, 'malformed_json', 0, 'The data is not JSON.', (failure as Error).message);
    }
    if (parsed === null || typeof parsed !== 'object') throw new Problem(0, 'wrong_type', 0, 'The data is not a JSON object.', 'Enter an object, such as {}.');
    // The text itself, so that large integers stay what they are.
    const made = await call<Instance>('POST', `/v1/instances${at(machine)}`, `{"key":${JSON.stringify(key)},"data":${data}}`);
    go(instancePath(made.machine, made.key));
  });
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        <Icon name="plus" />
        New instance
      </button>
      <Dialog title={`Create an instance of ${machine}`} open={open} onClose={() => setOpen(false)}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            create.start();
          }}
        >
          {create.problem && <Refusal problem={create.problem} />}
          <Field label="Key" hint="Names the instance; unique within the machine.">
            <input name="key" required autoFocus spellcheck={false} autocomplete="off" class="mono" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          </Field>
          <Field label="Data" hint="JSON. Omitted fields have their defaults.">
            <textarea name="data" rows={6} spellcheck={false} class="mono" value={data} onInput={(event) => setData(event.currentTarget.value)} />
          </Field>
          <div class="form-end">
            <button type="button" onClick={() => setOpen(false)}>
              Cancel
            </button>
            <button class="primary" disabled={create.busy}>
              Create
            </button>
          </div>
        </form>
      </Dialog>
    </>
  );
}

interface EventRow {
  event: string;
  from: string[];
  outcomes: { to: string | undefined; guarded: boolean }[];
}

/** What an event does in each state; states where it does the same share a row. */
function eventRows(definition: Definition): EventRow[] {
  return definition.events.flatMap((event) => {
    const rows = new Map<string, EventRow>();
    const known = definition.transitions.filter((row) => row.event === event);
    for (const from of new Set(known.map((row) => row.from))) {
      const texts = known.filter((row) => row.from === from).map(({ internal, to, guarded }) => JSON.stringify({ ...(internal ? {} : { to }), guarded }));
      const same = [...new Set(texts)];
      const alike = rows.get(same.join());
      if (alike) alike.from.push(from);
      else rows.set(same.join(), { event, from: [from], outcomes: same.map((text) => JSON.parse(text) as EventRow['outcomes'][number]) });
    }
    return [...rows.values()];
  });
}

function Events({ definition }: { definition: Definition }) {
  return (
    <div class="table-place">
      <table class="event-rows">
        <thead>
          <tr>
            <th>Event</th>
            <th>From</th>
            <th>To</th>
          </tr>
        </thead>
        <tbody>
          {eventRows(definition).map(({ event, from, outcomes }, index, rows) => (
            <tr key={`${event} ${from.join()}`}>
              <td>{event === rows[index - 1]?.event ? <span class="sr">{event}</span> : <strong>{event}</strong>}</td>
              <td>
                <div class="states">
                  {from.map((state) => (
                    <StateBadge key={state} machine={definition.name} state={state} />
                  ))}
                </div>
              </td>
              <td>
                {outcomes.map(({ to, guarded }) => (
                  <div key={`${to} ${guarded}`} class="outcome">
                    {to === undefined ? <span class="quiet">stays</span> : <StateBadge machine={definition.name} state={to} />}
                    {guarded && <span class="quiet small-text">guarded</span>}
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Recent({ seen }: { seen: Seen[] }) {
  if (seen.length === 0) return <Empty icon="feed" title="No recent transitions">Transitions appear here when they are durable.</Empty>;
  return (
    <ol class="recent" aria-label="Recent transitions, newest first">
      {seen.map((entry) => (
        <li key={entry.seq}>
          <time class="quiet number" dateTime={entry.at}>
            {clockTime(entry.at)}
          </time>
          <KeyLink machine={entry.machine} name={entry.key} />
          <span class="recent-event">{entry.event || entry.kind}</span>
          <StateBadge machine={entry.machine} state={entry.state} />
        </li>
      ))}
    </ol>
  );
}

export function MachinePage({ name }: { name: string }) {
  const known = useStore(machines);
  const live = useStore(stats);
  const isFlow = useStore(flows)?.some((flow) => flow.name === name);
  const { seen, moving } = useSteps(name);
  const Diagram = useModule(() => import('../diagram'));
  const machine = known?.find((candidate) => candidate.name === name);
  if (known && !machine) {
    return (
      <>
        <Heading title={name} mono />
        <Empty icon="machine" title={`There is no machine ${name}`}>
          <Link to="/">Go to the overview</Link>
        </Empty>
      </>
    );
  }
  const counts = live?.counts[name] ?? machine?.counts ?? {};
  const total = Object.values(counts).reduce((sum, value) => sum + value, 0);
  return (
    <>
      <Heading title={name} mono above={isFlow ? 'Machine of a flow' : 'Machine'}>
        {isFlow && (
          <Link to={`/runs?flow=${encodeURIComponent(name)}&finished=any`} class="button">
            Runs
          </Link>
        )}
        <Link to={`/instances?machine=${encodeURIComponent(name)}&finished=any`} class="button">
          {count(total)} instances
        </Link>
        {machine && !isFlow && may('operator') && <Begin machine={name} />}
      </Heading>
      <Card title="State diagram" aside={<span class="quiet">Select a state to list its instances</span>}>
        {machine && Diagram ? <Diagram definition={machine.definition} counts={counts} steps={moving} /> : <Skeleton lines={6} />}
      </Card>
      <div class="columns">
        <Card title="Recent transitions" flush>
          <Recent seen={seen} />
        </Card>
        <Card title="Events" flush>
          {machine ? <Events definition={machine.definition} /> : <Skeleton />}
        </Card>
      </div>
    </>
  );
}
