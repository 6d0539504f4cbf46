// SPDX-License-Identifier: Apache-2.0
import { get, query } from '../api';
import { count } from '../format';
import { machines, useResource } from '../live';
import { Listed } from '../paging';
import { Link, refine, usePlace } from '../router';
import { useStore } from '../store';
import type { Instance, InstancePage } from '../types';
import { Ago, Card, Empty, Heading, KeyLink, Search, Segments, Select, StateBadge } from '../ui';

const kPage = 50;

function waitsFor(instance: Instance): string {
  const parts = [];
  if (instance.work.length) parts.push(instance.work.map((work) => work.name).join(', '));
  if (instance.timers.length) parts.push(`${instance.timers.length} ${instance.timers.length === 1 ? 'timer' : 'timers'}`);
  return parts.join(' · ');
}

function Rows({ instances, oneMachine }: { instances: Instance[]; oneMachine: boolean }) {
  return (
    <div class="table-place">
      <table>
        <thead>
          <tr>
            <th>Key</th>
            {!oneMachine && <th class="spare">Machine</th>}
            <th>State</th>
            <th class="spare">Waits for</th>
            <th class="end spare">Version</th>
            <th class="end">Changed</th>
          </tr>
        </thead>
        <tbody>
          {instances.map((instance) => (
            <tr key={instance.id}>
              <td>
                <KeyLink machine={instance.machine} name={instance.key} />
              </td>
              {!oneMachine && (
                <td class="spare">
                  <Link to={`/machines/${encodeURIComponent(instance.machine)}`}>{instance.machine}</Link>
                </td>
              )}
              <td>
                <StateBadge machine={instance.machine} state={instance.state} />
              </td>
              <td class="quiet spare">{waitsFor(instance)}</td>
              <td class="end number spare">{count(instance.version)}</td>
              <td class="end quiet number">
                <Ago time={instance.at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function InstancesPage() {
  const place = usePlace();
  const known = useStore(machines);
  const [machine, state, prefix, finished, cursor] = ['machine', 'state', 'prefix', 'finished', 'cursor'].map(
    (name) => place.query.get(name) ?? '',
  ) as [string, string, string, string, string];
  // Finished instances only grow in number, so the running ones are what is shown first.
  const wanted = state || finished === 'any' ? '' : finished || 'false';
  const asked = query({ machine, state, prefix, finished: wanted, cursor, limit: kPage });
  const page = useResource<InstancePage>(asked, (signal) => get(`/v1/instances${asked}`, signal), 2000);
  const states = known?.find((candidate) => candidate.name === machine)?.definition.states ?? [];
  const filtered = Boolean(machine || state || prefix || wanted);
  return (
    <>
      <Heading title="Instances" />
      <Card flush>
        <div class="filters" role="search">
          <Search label="Key starts with" value={prefix} onChange={(value) => refine(place, { prefix: value })} />
          <Select label="Machine" any="All machines" value={machine} options={known?.map(({ name }) => name) ?? []} onChange={(value) => refine(place, { machine: value, state: '' })} />
          {machine && <Select label="State" any="All states" value={state} options={states.map(({ name }) => name)} onChange={(value) => refine(place, { state: value, finished: '' })} />}
          {!state && (
            <Segments
              label="Progress"
              value={finished}
              options={[
                ['', 'Running'],
                ['true', 'Finished'],
                ['any', 'All'],
              ]}
              onChange={(value) => refine(place, { finished: value })}
            />
          )}
        </div>
        <Listed
          page={page}
          rows={page.data?.instances}
          place={place}
          note="Oldest first"
          none={
            <Empty icon="instances" title={filtered ? 'No matching instances' : 'No instances yet'}>
              {filtered ? <Link to="/instances?finished=any">Show all</Link> : 'Instances appear here when a program or a user creates them.'}
            </Empty>
          }
        >
          <Rows instances={page.data?.instances ?? []} oneMachine={machine !== ''} />
        </Listed>
      </Card>
    </>
  );
}
