// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { Problem, at, call, get } from '../api';
import { Icon } from '../icons';
import { useResource } from '../live';
import { go } from '../router';
import type { Flow, Pool, Run } from '../types';
import { Dialog, Field, Refusal, Select, runPath, useAction } from '../ui';

interface Wanted {
  flow: string;
  id: string;
  request: string;
  queue: string;
  priority: string;
  delay: string;
}

async function start(wanted: Wanted): Promise<Run> {
  try {
    JSON.parse(wanted.request);
  } catch (failure) {
    throw new Problem(0, 'malformed_json', 0, 'The request is not JSON.', (failure as Error).message);
  }
  const { id, queue, delay } = wanted;
  const options = { ...(id && { id }), ...(queue && { queue, priority: Number(wanted.priority) }), ...(delay && { delay }) };
  // As it was typed, so that large integers stay what they are.
  const body = `${JSON.stringify(options).replace(/}$/, '')}${Object.keys(options).length ? ',' : ''}"request":${wanted.request}}`;
  return call<Run>('POST', `/v1/flows${at(wanted.flow)}/runs`, body);
}

function Form({ known, chosen, onClose }: { known: Flow[]; chosen: string; onClose(): void }) {
  const [wanted, setWanted] = useState<Wanted>({ flow: chosen || (known[0]?.name ?? ''), id: '', request: '{}', queue: '', priority: '0', delay: '' });
  const pools = useResource<{ pools: Pool[] }>('pools', (signal) => get('/v1/pools', signal));
  const change = (name: keyof Wanted) => (value: string) => setWanted((before) => ({ ...before, [name]: value }));
  const typed = (name: keyof Wanted) => (event: { currentTarget: { value: string } }) => change(name)(event.currentTarget.value);
  const starting = useAction(async () => go(runPath(await start(wanted))));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        starting.start();
      }}
    >
      {starting.problem && <Refusal problem={starting.problem} />}
      <Field label="Flow">
        <Select label="Flow of the run" value={wanted.flow} options={known.map(({ name }) => name)} onChange={change('flow')} />
      </Field>
      <Field label="Id" hint="At most one run in progress per id. Leave it empty for a new id.">
        <input name="id" autoFocus spellcheck={false} autocomplete="off" class="mono" value={wanted.id} onInput={typed('id')} />
      </Field>
      <Field label="Request" hint="JSON. Omitted fields have their defaults.">
        <textarea name="request" rows={5} spellcheck={false} class="mono" value={wanted.request} onInput={typed('request')} />
      </Field>
      <div class="form-row">
        <Field label="Queue">
          <Select label="Queue" any="None" value={wanted.queue} options={pools.data?.pools.map(({ name }) => name) ?? []} onChange={change('queue')} />
        </Field>
        <Field label="Priority">
          <input name="priority" type="number" required disabled={!wanted.queue} value={wanted.priority} onInput={typed('priority')} />
        </Field>
        <Field label="Delay">
          <input name="delay" placeholder="10s, 5m, 2h" autocomplete="off" value={wanted.delay} onInput={typed('delay')} />
        </Field>
      </div>
      <div class="form-end">
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button class="primary" disabled={starting.busy}>
          Start run
        </button>
      </div>
    </form>
  );
}

/** For operators; a program does the same with POST /v1/flows/{flow}/runs. */
export function StartRun({ known, chosen }: { known: Flow[]; chosen: string }) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        <Icon name="plus" />
        New run
      </button>
      <Dialog title="Start a run" open={open} onClose={close}>
        <Form known={known} chosen={chosen} onClose={close} />
      </Dialog>
    </>
  );
}
