// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { at, call, get, may } from '../api';
import { count } from '../format';
import { useResource } from '../live';
import type { Pool } from '../types';
import { Card, Empty, Heading, Refusal, Skeleton, useAction } from '../ui';

// The engine's own permit pools, which limit work that names no other. Runs cannot queue there, and their size is fixed.
export const ownPools = ['work_threads', 'started_attempts'];

export function PoolCard({ pool, onChanged, children }: { pool: Pool; onChanged(): void; children?: ComponentChildren }) {
  const [size, setSize] = useState('');
  const resize = useAction(async () => {
    await call('PUT', `/v1/pools${at(pool.name)}`, { size: Number(size) });
    setSize('');
    onChanged();
  });
  const used = Math.min(1, pool.granted / pool.size);
  return (
    <Card title={pool.name} aside={pool.waiting > 0 ? <span class="tag accent">{count(pool.waiting)} waiting</span> : <span class="quiet">none waiting</span>}>
      <p class="pool-use">
        <strong class="number">{count(pool.granted)}</strong>
        <span class="quiet">of {count(pool.size)} permits in use</span>
      </p>
      <div class="bar meter" role="meter" aria-label={`Permits of ${pool.name} in use`} aria-valuemin={0} aria-valuemax={pool.size} aria-valuenow={pool.granted}>
        {used > 0 && <i class={`tint ${used >= 1 ? 'full' : ''}`} style={{ flex: `0 0 ${used * 100}%` }} />}
      </div>
      {resize.problem && <Refusal problem={resize.problem} />}
      {may('operator') && !ownPools.includes(pool.name) && (
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            resize.start();
          }}
        >
          <input type="number" min={1} max={1000000} required aria-label={`New size of ${pool.name}`} placeholder={String(pool.size)} value={size} onInput={(event) => setSize(event.currentTarget.value)} />
          <button disabled={resize.busy || !size}>Resize</button>
        </form>
      )}
      {children}
    </Card>
  );
}

export function PoolsPage() {
  const page = useResource<{ pools: Pool[] }>('pools', (signal) => get('/v1/pools', signal), 1000);
  return (
    <>
      <Heading title="Permit pools" />
      {page.error && <Refusal problem={page.error} />}
      {!page.data && !page.error && <Skeleton lines={5} />}
      {page.data?.pools.length === 0 && (
        <Card>
          <Empty icon="pools" title="No permit pools">
            A permit pool limits how much work runs at once. Define permit pools as engine.pools in pawl.yaml; systems add their own.
          </Empty>
        </Card>
      )}
      <div class="grid">
        {page.data?.pools.map((pool) => <PoolCard key={pool.name} pool={pool} onChanged={page.reload} />)}
      </div>
      {page.data && page.data.pools.length > 0 && <p class="quiet">{may('operator') ? 'A new size holds until the next start of the server, which takes the size from pawl.yaml.' : 'Resizing a permit pool needs the role operator.'}</p>}
    </>
  );
}
