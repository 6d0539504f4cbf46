// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { get } from '../api';
import { bytes, count, rate } from '../format';
import { machines, reachable, samples, stats, systems, useResource } from '../live';
import { Link } from '../router';
import { useStore } from '../store';
import { Card, Empty, Heading, Skeleton, tint, useModule } from '../ui';
import type { Counts, Machine } from '../types';

function Tile(props: { label: string; value: string; hint: string; warn?: boolean }) {
  return (
    <div class={`tile ${props.warn ? 'warn' : ''}`} title={props.hint}>
      <span>{props.label}</span>
      <strong>{props.value}</strong>
    </div>
  );
}

function Tiles() {
  const known = useStore(stats);
  const recent = useStore(samples);
  const shown = (value: number | undefined) => (value === undefined ? '–' : count(value));
  const latest = recent.at(-1);
  return (
    <div class="tiles">
      <Tile label="Transitions/s" value={latest ? rate(latest.rate) : '–'} hint="entries made durable in the last second" />
      <Tile label="Instances" value={shown(known?.instances)} hint="of all machines, finished ones included" />
      <Tile label="Running work" value={shown(known?.running_work)} hint="work that is running now" />
      <Tile label="Timers" value={shown(known?.timers)} hint="timers that are set" />
      <Tile label="Pending" value={shown(known?.queue)} hint="transactions that wait for their commit" warn={(known?.queue ?? 0) > 10_000} />
      <Tile label="Refused" value={shown(known?.refused)} hint="since the server started: events that a state or a guard did not accept" />
      <Tile label="Conflicts" value={shown(known?.conflicts)} hint="since the server started: transactions that found a newer version" />
      <Tile label="Cache" value={known ? bytes(known.cached_bytes) : '–'} hint="instance data kept in memory" />
    </div>
  );
}

function Throughput() {
  const [hover, setHover] = useState('');
  const Chart = useModule(() => import('../chart'));
  const recent = useStore(samples);
  const window = recent.slice(-120);
  const mean = window.reduce((sum, sample) => sum + sample.rate, 0) / Math.max(1, window.length);
  return (
    <Card title="Throughput" class="throughput" aside={<span class="quiet number">{hover || (window.length ? `mean ${rate(mean)}/s` : 'measuring')}</span>}>
      {Chart ? <Chart onHover={setHover} /> : <div class="chart" />}
    </Card>
  );
}

function Health() {
  const ready = useResource<{ status: string }>('ready', (signal) => get('/readyz', signal), 5000);
  const live = useStore(reachable);
  const known = useStore(stats);
  const good = live && ready.data && !ready.error;
  const text = !live ? 'The server does not answer' : ready.error ? ready.error.message : ready.data ? 'Ready' : 'Checking';
  return (
    <Card title="Health">
      <p class={`health ${good ? 'good' : live && !ready.error ? '' : 'bad'}`}>
        <i />
        <strong>{text}</strong>
      </p>
      <dl class="facts">
        <dt>Entries in the log</dt>
        <dd class="number">{known ? count(known.last_seq) : '–'}</dd>
        <dt>Commits since the server started</dt>
        <dd class="number">{known ? count(known.commits) : '–'}</dd>
        <dt>Entries per commit</dt>
        <dd class="number">{known && known.commits > 0 ? (known.transitions / known.commits).toFixed(1) : '–'}</dd>
      </dl>
      <p class="quiet links">
        <a href="/metrics">Metrics</a>
        <a href="/v1/openapi.json">OpenAPI</a>
      </p>
    </Card>
  );
}

/** Running states as a bar, every state as a number. */
function MachineRow({ machine, counts }: { machine: Machine; counts: Counts }) {
  const { name, definition } = machine;
  const running = definition.states.filter((state) => !state.terminal);
  const total = running.reduce((sum, state) => sum + (counts[state.name] ?? 0), 0);
  const finished = definition.states.reduce((sum, state) => sum + (state.terminal ? (counts[state.name] ?? 0) : 0), 0);
  return (
    <div class="machine-row">
      <div class="machine-name">
        <Link to={`/machines/${encodeURIComponent(name)}`}>{name}</Link>
        <span class="quiet number">
          {count(total)} running{finished > 0 && `, ${count(finished)} finished`}
        </span>
      </div>
      <div class="bar" role="img" aria-label={`${total} running instances of ${name} by state`}>
        {running.map((state) => {
          const value = counts[state.name] ?? 0;
          const look = tint(definition, state.name);
          return value > 0 && <i key={state.name} class={look.class} style={{ ...look.style, flexGrow: String(value) }} title={`${state.name}: ${count(value)}`} />;
        })}
      </div>
      <ul class="legend">
        {definition.states.map((state) => {
          const look = tint(definition, state.name);
          return (
            <li key={state.name}>
              <Link to={`/instances?machine=${encodeURIComponent(name)}&state=${encodeURIComponent(state.name)}`}>
                <i class={look.class} style={look.style} />
                {state.name} <span class="number">{count(counts[state.name] ?? 0)}</span>
              </Link>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function MachineList() {
  const known = useStore(machines);
  const live = useStore(stats);
  const countsOf = (machine: Machine) => live?.counts[machine.name] ?? machine.counts;
  const used = known?.filter((machine) => Object.values(countsOf(machine)).some((value) => value > 0)) ?? [];
  const idle = known?.filter((machine) => !used.includes(machine)) ?? [];
  return (
    <Card title="Machines" flush>
      {!known && <Skeleton lines={5} />}
      {known?.length === 0 && (
        <Empty icon="machine" title="No machines">
          Systems bring machines. Enable systems in pawl.yaml, or start the server with --demo.
        </Empty>
      )}
      {used.map((machine) => <MachineRow key={machine.name} machine={machine} counts={countsOf(machine)} />)}
      {idle.length > 0 && (
        <div class="machine-row">
          <p class="quiet small-text">No instances</p>
          <ul class="idle">
            {idle.map(({ name }) => (
              <li key={name}>
                <Link to={`/machines/${encodeURIComponent(name)}`}>{name}</Link>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Card>
  );
}

function SystemList() {
  const known = useStore(systems);
  return (
    <Card title="Systems" flush>
      {!known && <Skeleton lines={2} />}
      {known?.length === 0 && (
        <Empty icon="page" title="No systems">
          Enable systems in pawl.yaml.
        </Empty>
      )}
      <ul class="rows">
        {known?.map(({ name, summary, page }) => (
          <li key={name}>
            <div>
              <strong>{name}</strong>
              <p class="quiet">{summary}</p>
            </div>
            {page && (
              <Link to={`/systems/${encodeURIComponent(name)}`} class="button">
                {page.title}
              </Link>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function OverviewPage() {
  return (
    <>
      <Heading title="Overview" />
      <Tiles />
      <div class="columns wide-left">
        <Throughput />
        <Health />
      </div>
      <div class="columns wide-left">
        <MachineList />
        <SystemList />
      </div>
    </>
  );
}
