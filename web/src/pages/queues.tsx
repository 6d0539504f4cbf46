// SPDX-License-Identifier: Apache-2.0
import { get, may, query } from '../api';
import { queuedRuns } from '../flow';
import { count } from '../format';
import { flows, useLog, useResource } from '../live';
import { Link } from '../router';
import { useStore } from '../store';
import type { Pool, Run, RunPage } from '../types';
import { Ago, Card, Empty, Heading, NoFlows, Refusal, RunChip, RunLink, Skeleton } from '../ui';
import { ownPools, PoolCard } from './pools';

const kAsked = 500;
const kShown = 20;

function WaitingRuns({ runs, name }: { runs: Run[]; name: string }) {
  return (
    <div class="table-place">
      <table class="queue-line" aria-label={`Runs waiting for ${name}, next first`}>
        <thead>
          <tr>
            <th>Place</th>
            <th class="fill">Run</th>
            <th class="end">Priority</th>
            <th class="end">Age</th>
          </tr>
        </thead>
        <tbody>
          {runs.slice(0, kShown).map((run, index) => (
            <tr key={`${run.flow} ${run.id}`}>
              <td class="number quiet">{index + 1}</td>
              <td class="fill">
                <div class="one-line">
                  <RunLink run={run} withFlow />
                </div>
              </td>
              <td class="end number">{run.priority ?? 0}</td>
              <td class="end quiet number">
                <Ago time={run.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Admitted({ runs }: { runs: Run[] }) {
  if (runs.length === 0) return null;
  return (
    <>
      <h3>Admitted</h3>
      <ul class="admitted">
        {runs.slice(0, kShown).map((run) => (
          <li key={`${run.flow} ${run.id}`}>
            <RunLink run={run} withFlow />
            <RunChip run={run} />
          </li>
        ))}
        {runs.length > kShown && <li class="quiet">and {count(runs.length - kShown)} more</li>}
      </ul>
    </>
  );
}

const notQueued = ['delayed', 'waiting', 'paused', 'fresh'];

function Queue({ pool, page, onChanged }: { pool: Pool; page: RunPage | undefined; onChanged(): void }) {
  const runs = page?.runs ?? [];
  const waiting = queuedRuns(runs);
  const later = runs.filter((run) => notQueued.includes(run.state));
  const going = runs.filter((run) => run.status !== 'queued' && !notQueued.includes(run.state));
  return (
    <PoolCard pool={pool} onChanged={onChanged}>
      <div class="queue">
        {!page && <Skeleton lines={3} />}
        {page && <Admitted runs={going} />}
        {page && waiting.length === 0 && (
          <p class="quiet">
            {going.length === 0 ? 'No runs in this queue.' : 'No waiting runs.'}
            {/* Work of machines and of single steps uses the same queue. */}
            {pool.waiting > 0 && ' Work of machines or of single steps is waiting.'}
          </p>
        )}
        {waiting.length > 0 && (
          <>
            <h3>Waiting</h3>
            <WaitingRuns runs={waiting} name={pool.name} />
          </>
        )}
        {waiting.length > kShown && <p class="quiet small">and {count(waiting.length - kShown)}{page?.next ? ' or more' : ''} behind these</p>}
        {later.length > 0 && <p class="quiet small">{count(later.length)} not queued yet: delayed, paused, or waiting for another run</p>}
      </div>
    </PoolCard>
  );
}

async function loadQueue(queue: string, signal: AbortSignal): Promise<RunPage> {
  if (flows.get()?.length === 0) return { runs: [] };
  return get<RunPage>(`/v1/runs${query({ queue, limit: kAsked })}`, signal);
}

async function loadQueues(signal: AbortSignal): Promise<{ pools: Pool[]; waiting: Map<string, RunPage> }> {
  const answer = await get<{ pools: Pool[] }>('/v1/pools', signal);
  const pools = answer.pools.filter(({ name }) => !ownPools.includes(name));
  const pages = await Promise.all(pools.map(async ({ name }) => [name, await loadQueue(name, signal)] as const));
  return { pools, waiting: new Map(pages) };
}

export function QueuesPage() {
  const known = useStore(flows);
  const page = useResource(known ? 'queues' : '', loadQueues, 2000);
  const only = known?.length === 1 ? (known[0]?.name ?? '') : '';
  useLog(only ? { machine: only } : {}, page.touch, (entry) => Boolean(known?.some(({ name }) => name === entry.machine)));
  // Permit pools with runs come first; the others limit work.
  const length = (pool: Pool) => Math.min(1, page.data?.waiting.get(pool.name)?.runs.length ?? 0);
  const pools = page.data?.pools.toSorted((one, other) => length(other) - length(one));
  return (
    <>
      <Heading title="Queues" />
      {page.error && <Refusal problem={page.error} />}
      {!pools && !page.error && <Skeleton lines={5} />}
      {pools?.length === 0 && (
        <Card>
          {known?.length === 0 ? (
            <NoFlows />
          ) : (
            <Empty icon="queues" title="No queues">
              A queue is a permit pool that a run names when it starts. Define permit pools as engine.pools in pawl.yaml.
            </Empty>
          )}
        </Card>
      )}
      <div class="grid queues">
        {pools?.map((pool) => <Queue key={pool.name} pool={pool} page={page.data?.waiting.get(pool.name)} onChanged={page.reload} />)}
      </div>
      {pools && pools.length > 0 && (
        <p class="quiet">
          {may('operator') ? 'A higher priority goes first. A new size holds until the next start of the server, which takes the size from pawl.yaml.' : 'Resizing a queue needs the role operator.'}{' '}
          <Link to="/runs">All runs</Link>
        </p>
      )}
    </>
  );
}
