// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from 'preact/hooks';
import { Problem, at, call, get, identity, may, write } from '../api';
import { changes } from '../diff';
import { clockTime, count, due, moment } from '../format';
import { Icon } from '../icons';
import { type Resource, flows, now, useLog, useResource } from '../live';
import { Link } from '../router';
import { useStore } from '../store';
import type { HistoryPage, Instance, Json, LogEntry } from '../types';
import { Ago, Card, Code, Empty, Field, Heading, Refusal, Skeleton, StateBadge, brief, runPath, takeFocus, useAction } from '../ui';

const kPage = 50;
const kChanges = 8;

/** So that an event whose answer was lost can be sent again, and is accepted once. */
function requestId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function send(instance: Instance, event: string, payload: string, guarded: boolean, id: string): Promise<Instance> {
  try {
    JSON.parse(payload);
  } catch (failure) {
    throw new Problem(0, 'malformed_json', 0, 'The payload is not JSON.', (failure as Error).message);
  }
  const expected = guarded ? `,"expected_version":${instance.version}` : '';
  const body = `{"event":${JSON.stringify(event)},"payload":${payload}${expected}}`;
  return call<Instance>('POST', `/v1/instances${at(instance.machine, instance.key)}/events`, body, undefined, { 'Idempotency-Key': id });
}

function EventForm(props: { instance: Instance; event: string; example: Json | undefined; onDone(): void; onChanged(): void }) {
  const { instance, event } = props;
  const [payload, setPayload] = useState(() => write(props.example ?? {}));
  const [guarded, setGuarded] = useState(true);
  const id = useRef(requestId());
  const sending = useAction(async () => {
    try {
      await send(instance, event, payload, guarded, id.current);
    } catch (failure) {
      if ((failure as Problem).status > 0) id.current = requestId();
      throw failure;
    }
    props.onChanged();
    props.onDone();
  });
  return (
    <form
      class="event-form"
      aria-label={`Send ${event}`}
      onSubmit={(submitted) => {
        submitted.preventDefault();
        sending.start();
      }}
      onKeyDown={(pressed) => {
        if (pressed.key === 'Escape') props.onDone();
        if (pressed.key === 'Enter' && (pressed.ctrlKey || pressed.metaKey)) sending.start();
      }}
    >
      {sending.problem && (
        <Refusal problem={sending.problem}>
          {sending.problem.code === 'version_conflict' && <p>The instance has changed in the meantime. The page now shows the newest version; send the event again if it still applies.</p>}
        </Refusal>
      )}
      <Field label={`Payload of ${event}`} hint="JSON. Omitted fields have their defaults.">
        <textarea name="payload" rows={Math.min(10, payload.split('\n').length + 1)} ref={takeFocus} spellcheck={false} class="mono" value={payload} onInput={(typed) => setPayload(typed.currentTarget.value)} />
      </Field>
      <label class="check">
        <input type="checkbox" checked={guarded} onChange={(changed) => setGuarded(changed.currentTarget.checked)} />
        Only if the instance is still at version {instance.version}
      </label>
      <div class="form-end">
        <button type="button" onClick={props.onDone}>
          Close
        </button>
        <button class="primary" disabled={sending.busy}>
          Send {event}
        </button>
      </div>
    </form>
  );
}

function Actions({ instance, history, onChanged }: { instance: Instance; history: LogEntry[]; onChanged(): void }) {
  const [chosen, setChosen] = useState('');
  const known = useStore(identity);
  const allowed = may('operator');
  if (instance.finished) return <p class="quiet">This instance is finished and accepts no more events.</p>;
  if (instance.legal.length === 0) return <p class="quiet">This state accepts no events.</p>;
  return (
    <>
      <div class="events">
        {instance.legal.map((event) => (
          <button key={event} type="button" aria-pressed={event === chosen} disabled={!allowed} onClick={() => setChosen(event === chosen ? '' : event)}>
            {event}
          </button>
        ))}
      </div>
      {!allowed && (
        <p class="note">
          <Icon name="lock" />
          <span>
            Sending events needs the role <strong>operator</strong>; you have the role <strong>{known?.role}</strong>.
          </span>
        </p>
      )}
      {allowed && chosen && (
        <EventForm
          key={chosen}
          instance={instance}
          event={chosen}
          example={history.find((entry) => entry.event === chosen)?.payload}
          onDone={() => setChosen('')}
          onChanged={onChanged}
        />
      )}
    </>
  );
}

/** What an entry tells that is no event of the machine: an attempt, a refusal, where a recovery began. */
function told(payload: Json | undefined): string {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return '';
  return Object.entries(payload)
    .map(([name, value]) => (value === true ? name : `${name} ${typeof value === 'string' ? value : brief(value)}`))
    .join(', ');
}

function Entry({ entry, older }: { entry: LogEntry; older: LogEntry | undefined }) {
  const changed = entry.kind === 'created' ? [] : changes(older?.data, entry.data);
  const comparable = entry.kind !== 'created' && older !== undefined;
  const fired = entry.kind === 'fired';
  const payload = fired && entry.payload !== undefined && write(entry.payload) !== '{}';
  return (
    <li class="entry">
      <div class="entry-line">
        {fired || !entry.event ? (
          <strong>{entry.event || 'Created'}</strong>
        ) : (
          <span>
            {entry.event}
            {entry.event !== entry.kind && <span class="tag">{entry.kind}</span>}
          </span>
        )}
        <span class="entry-states">
          {comparable && older.state !== entry.state && (
            <>
              <StateBadge machine={entry.machine} state={older.state} />
              <Icon name="arrow" />
              <span class="sr">to</span>
            </>
          )}
          <StateBadge machine={entry.machine} state={entry.state} />
        </span>
        <time class="quiet number" dateTime={entry.at} title={moment(entry.at)}>
          {clockTime(entry.at)}
        </time>
        <span class="quiet number version">v{entry.version}</span>
      </div>
      {!fired && entry.payload !== undefined && <p class="told quiet">{told(entry.payload)}</p>}
      {comparable && changed.length > 0 && (
        <dl class="changes">
          {changed.slice(0, kChanges).map((change) => (
            <div key={change.path}>
              <dt class="mono">{change.path || 'data'}</dt>
              <dd class="mono">
                {change.before !== undefined && change.before !== '' && <del>{brief(change.before)}</del>} <ins>{brief(change.after)}</ins>
              </dd>
            </div>
          ))}
          {changed.length > kChanges && <div class="quiet">and {changed.length - kChanges} more</div>}
        </dl>
      )}
      {(payload || entry.kind === 'created') && (
        <details>
          <summary>{payload ? 'Payload' : 'Data'}</summary>
          <Code value={(payload ? entry.payload : entry.data) ?? null} />
        </details>
      )}
    </li>
  );
}

function Timeline({ path, first }: { path: string; first: Resource<HistoryPage> }) {
  const [older, setOlder] = useState<HistoryPage>();
  const more = useAction(async (before: number) => {
    const next = await get<HistoryPage>(`${path}?limit=${kPage}&before=${before}`);
    setOlder((known) => ({ ...next, events: [...(known?.events ?? []), ...next.events] }));
  });
  const page = first.data;
  if (first.error && !page) return <Refusal problem={first.error} />;
  if (!page) return <Skeleton lines={8} />;
  // What was loaded of the past stays; what is new since then lies between.
  const oldest = page.events.at(-1)?.seq ?? 0;
  const events = [...page.events, ...(older?.events.filter((entry) => entry.seq < oldest) ?? [])];
  const last = older ?? page;
  return (
    <>
      <ol class="timeline" aria-label="History, newest first">
        {events.map((entry, index) => (
          <Entry key={entry.seq} entry={entry} older={events[index + 1]} />
        ))}
      </ol>
      {more.problem && <Refusal problem={more.problem} />}
      {last.next !== undefined && (
        <div class="pager">
          <button type="button" disabled={more.busy} onClick={() => more.start(last.next ?? 0)}>
            Show older entries
          </button>
        </div>
      )}
      {last.truncated && last.next === undefined && <p class="quiet padded">Older entries were removed by retention.</p>}
    </>
  );
}

function Pending({ instance }: { instance: Instance }) {
  const time = useStore(now);
  if (instance.timers.length === 0 && instance.work.length === 0) return <p class="quiet">No timers and no work.</p>;
  return (
    <ul class="rows tight">
      {instance.timers.map((timer) => (
        <li key={`timer ${timer.name}`}>
          <div>
            <strong>{timer.name}</strong>
            <p class="quiet">timer, sends {timer.event}</p>
          </div>
          <time class="number" dateTime={timer.due} title={moment(timer.due)}>
            {due(timer.due, time)}
          </time>
        </li>
      ))}
      {instance.work.map((work) => (
        <li key={`work ${work.number}`}>
          <div>
            <strong>{work.name}</strong>
            <p class="quiet">work {work.attempt > 0 && `, attempt ${work.attempt}`}</p>
          </div>
          <span class="number">{work.not_before && Date.parse(work.not_before) > time ? `retry ${due(work.not_before, time)}` : work.attempt === 0 ? 'waiting' : 'running'}</span>
        </li>
      ))}
    </ul>
  );
}

function Facts({ instance }: { instance: Instance }) {
  return (
    <dl class="facts">
      <dt>Version</dt>
      <dd class="number">{count(instance.version)}</dd>
      <dt>Changed</dt>
      <dd>
        <Ago time={instance.at} />
      </dd>
      <dt>Created</dt>
      <dd>
        <Ago time={instance.created_at} />
      </dd>
      {instance.generation > 1 && (
        <>
          <dt>Generation</dt>
          <dd class="number">{instance.generation}</dd>
        </>
      )}
      {instance.partition && (
        <>
          <dt>Partition</dt>
          <dd class="mono">{instance.partition}</dd>
        </>
      )}
      <dt>Id</dt>
      <dd class="mono small">{instance.id}</dd>
    </dl>
  );
}

export function InstancePage({ machine, name }: { machine: string; name: string }) {
  const path = `/v1/instances${at(machine, name)}`;
  const loaded = useResource<Instance>(path, (signal) => get(path, signal), 2000);
  const history = useResource<HistoryPage>(`${path}/history`, (signal) => get(`${path}/history?limit=${kPage}`, signal));
  const beside = useResource<{ values: Record<string, Json> }>(loaded.data ? `${path}/ephemerals` : '', (signal) => get(`${path}/ephemerals`, signal), 2000);
  // An instance may change faster than it can be asked for.
  const changed = () => {
    loaded.touch();
    history.touch();
  };
  useLog({ machine, key: name }, changed);
  const instance = loaded.data;
  const isFlow = useStore(flows)?.some((flow) => flow.name === machine);
  const values = beside.data?.values ?? {};
  const above = <Link to={`/machines/${encodeURIComponent(machine)}`}>{machine}</Link>;
  if (loaded.error && !instance) {
    return (
      <>
        <Heading title={name} mono above={above} />
        <Refusal problem={loaded.error} />
        {loaded.error.status === 404 && (
          <Empty icon="instances" title="Retention may have removed this instance">
            <Link to={`/instances?machine=${encodeURIComponent(machine)}`}>All instances of {machine}</Link>
          </Empty>
        )}
      </>
    );
  }
  return (
    <>
      <Heading title={name} mono above={above}>
        {isFlow && (
          <Link to={runPath({ flow: machine, id: name })} class="button">
            Show as a run
          </Link>
        )}
        {instance && (
          <span class="now" role="status" aria-label="State">
            <StateBadge machine={machine} state={instance.state} />
          </span>
        )}
      </Heading>
      <div class="columns wide-left instance">
        <Card title="History" flush>
          <Timeline path={`${path}/history`} first={history} />
        </Card>
        <div class="stack">
          {isFlow ? (
            <Card title="Run">
              <p class="quiet">
                This instance is a run of the flow {machine}. Operators control it on <Link to={runPath({ flow: machine, id: name })}>the page of the run</Link>.
              </p>
            </Card>
          ) : (
            <Card title="Send an event">
              {instance && isFlow === false ? <Actions instance={instance} history={history.data?.events ?? []} onChanged={changed} /> : <Skeleton lines={2} />}
            </Card>
          )}
          <Card title="Data">{instance ? <Code value={instance.data} /> : <Skeleton />}</Card>
          <Card title="Pending">{instance ? <Pending instance={instance} /> : <Skeleton lines={2} />}</Card>
          {Object.keys(values).length > 0 && (
            <Card title="Ephemeral values">
              <Code value={values} />
            </Card>
          )}
          <Card title="About">{instance ? <Facts instance={instance} /> : <Skeleton />}</Card>
        </div>
      </div>
    </>
  );
}
