// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from 'preact/hooks';
import { at, call, get, identity, may } from '../api';
import { type RunAction, type StepMark, legalActions, ordinarySteps, positionOf, stepMarks, undoneSteps } from '../flow';
import { count, due, moment } from '../format';
import { Gantt, SpanTable } from '../gantt';
import { Icon, type IconName } from '../icons';
import { flows, now, useLog, useResource } from '../live';
import { Link } from '../router';
import { useStore } from '../store';
import type { Flow, Run, RunSpan, RunTimeline } from '../types';
import { Ago, Card, Code, Dialog, Empty, Field, Heading, ProgressBar, Refusal, RunChip, RunLink, Segments, Select, Skeleton, instancePath, useAction } from '../ui';

function CancelDialog(props: { open: boolean; run: Run; onClose(): void; onChanged(): void }) {
  const [reason, setReason] = useState('');
  const cancel = useAction(async () => {
    await call('POST', `/v1/flows${at(props.run.flow)}/runs${at(props.run.id)}/cancel`, { reason });
    setReason('');
    props.onChanged();
    props.onClose();
  });
  return (
    <Dialog title={`Cancel ${props.run.id}`} open={props.open} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          cancel.start();
        }}
      >
        {cancel.problem && <Refusal problem={cancel.problem} />}
        <p class="quiet">A running step is asked to stop. Then the steps that were done are undone.</p>
        <Field label="Reason" hint="Stored with the run.">
          <input name="reason" required autoFocus autocomplete="off" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </Field>
        <div class="form-end">
          <button type="button" onClick={props.onClose}>
            Keep the run
          </button>
          <button class="primary danger" disabled={cancel.busy}>
            Cancel the run
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function RetryDialog(props: { open: boolean; run: Run; flow: Flow; onClose(): void; onChanged(): void }) {
  const { run } = props;
  const [chosen, setChosen] = useState('');
  const steps = ordinarySteps(props.flow).map((step) => step.name);
  const step = chosen || (steps.includes(run.step) ? run.step : (steps[0] ?? ''));
  const close = () => {
    setChosen('');
    props.onClose();
  };
  const retry = useAction(async () => {
    await call('POST', `/v1/flows${at(run.flow)}/runs${at(run.id)}/retry`, { step });
    props.onChanged();
    close();
  });
  return (
    <Dialog title={`Retry ${run.id}`} open={props.open} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          retry.start();
        }}
      >
        {retry.problem && <Refusal problem={retry.problem} />}
        <Field label="From step">
          <Select label="From step" value={step} options={steps} onChange={setChosen} />
        </Field>
        <p class="quiet">
          {run.finished ? 'The run starts again with its request and its response so far.' : 'A running step is asked to stop first. The response so far is kept.'}
        </p>
        <div class="form-end">
          <button type="button" onClick={close}>
            Close
          </button>
          <button class="primary" disabled={retry.busy}>
            Retry from {step}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const simple: Partial<Record<RunAction, [IconName, string]>> = { pause: ['pause', 'Pause'], resume: ['play', 'Resume'] };

/** What both the state and the role allow. */
function Actions({ run, flow, onChanged }: { run: Run; flow: Flow | undefined; onChanged(): void }) {
  const [open, setOpen] = useState<RunAction>();
  const legal = legalActions(run);
  const ask = useAction(async (action: RunAction) => {
    await call('POST', `/v1/flows${at(run.flow)}/runs${at(run.id)}/${action}`, {});
    onChanged();
  });
  const close = () => setOpen(undefined);
  return (
    <>
      {legal.map((action) => {
        const [icon, text] = simple[action] ?? [];
        if (icon) {
          return (
            <button key={action} type="button" disabled={ask.busy} onClick={() => ask.start(action)}>
              <Icon name={icon} />
              {text}
            </button>
          );
        }
        if (action === 'retry' && !flow) return null;
        return (
          <button key={action} type="button" onClick={() => setOpen(action)}>
            <Icon name={action === 'retry' ? 'loop' : 'close'} />
            {action === 'retry' ? 'Retry from step…' : 'Cancel'}
          </button>
        );
      })}
      <Dialog title="The server refused the request" open={ask.problem !== undefined} onClose={ask.clear}>
        {ask.problem && <Refusal problem={ask.problem} />}
      </Dialog>
      <CancelDialog open={open === 'cancel'} run={run} onClose={close} onChanged={onChanged} />
      {flow && <RetryDialog open={open === 'retry'} run={run} flow={flow} onClose={close} onChanged={onChanged} />}
    </>
  );
}

/** For users who may only read. */
function RoleNote() {
  const role = useStore(identity)?.role;
  if (may('operator')) return null;
  return (
    <p class="note">
      <Icon name="lock" />
      <span>
        Changing a run needs the role <strong>operator</strong>; you have the role <strong>{role}</strong>.
      </span>
    </p>
  );
}

const markText: Record<StepMark, string> = {
  done: 'done',
  present: 'current step',
  next: 'not started',
  failed: 'failed',
  stopped: 'stopped',
  skipped: 'not run',
};
const markIcon: Partial<Record<StepMark, IconName>> = { done: 'check', failed: 'close', stopped: 'pause' };

function Stepper({ flow, run, spans }: { flow: Flow; run: Run; spans: RunSpan[] }) {
  const marks = stepMarks(flow, run, spans);
  const undone = undoneSteps(spans);
  return (
    <ol class="stepper" aria-label="Steps">
      {flow.steps.map((step, index) => {
        const mark = marks[index] ?? 'next';
        const icon = markIcon[mark];
        return (
          <li key={step.name} class={mark} aria-current={mark === 'present' ? 'step' : undefined}>
            <span class="step-dot" aria-hidden="true">
              {icon ? <Icon name={icon} /> : index + 1}
            </span>
            <div class="step-text">
              <strong>{step.name}</strong>
              <span class="sr">{markText[mark]}</span>
              <div class="step-marks">
                {step.remote && <span class="tag" title="Done by a remote worker">remote</span>}
                {step.undo && <span class={`tag ${undone.has(step.name) ? 'accent' : ''}`} title={undone.has(step.name) ? 'Undone' : 'Can be undone'}>{undone.has(step.name) ? 'undone' : 'undo'}</span>}
                {step.finalizer && <span class="tag" title="Runs however the run ends">finalizer</span>}
              </div>
              {mark === 'present' && run.progress !== undefined && <ProgressBar value={run.progress} label={`Progress of ${step.name}`} />}
              {mark === 'present' && run.progress_text && <span class="quiet small">{run.progress_text}</span>}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function Plan({ run }: { run: Run }) {
  const time = useStore(now);
  const children = run.children ?? [];
  if (!run.queue && !run.not_before && !run.after && !run.parent && children.length === 0) return <p class="quiet">Started at once, without a queue, a parent or children.</p>;
  return (
    <dl class="facts plan">
      {run.queue && (
        <>
          <dt>Queue</dt>
          <dd>
            <Link to="/queues">{run.queue}</Link>, priority {run.priority ?? 0}
          </dd>
        </>
      )}
      {run.not_before && (
        <>
          <dt>Delay</dt>
          <dd>
            <time dateTime={run.not_before} title={moment(run.not_before)}>
              {run.finished ? moment(run.not_before) : `begins ${due(run.not_before, time)}`}
            </time>
          </dd>
        </>
      )}
      {run.after && (
        <>
          <dt>After</dt>
          <dd>
            <RunLink run={run.after} withFlow /> <span class="quiet">on {run.after.on}{run.after.ended ? `, ended as ${run.after.ended.replaceAll('_', ' ')}` : ''}</span>
          </dd>
        </>
      )}
      {run.parent && (
        <>
          <dt>Parent</dt>
          <dd>
            <RunLink run={run.parent} withFlow />
          </dd>
        </>
      )}
      {children.length > 0 && (
        <>
          <dt>Children</dt>
          <dd>
            <ul class="children">
              {children.map((child) => (
                <li key={`${child.flow} ${child.id}`}>
                  <RunLink run={child} withFlow /> <span class="quiet">{child.ended?.replaceAll('_', ' ') ?? 'in progress'}</span>
                </li>
              ))}
            </ul>
          </dd>
        </>
      )}
    </dl>
  );
}

function Facts({ run, flow }: { run: Run; flow: Flow | undefined }) {
  const time = useStore(now);
  const position = positionOf(run, flow);
  return (
    <dl class="facts">
      <dt>Step</dt>
      <dd>
        {run.step}
        {position && <span class="quiet number"> {position.number} of {position.of}</span>}
      </dd>
      {run.attempt > 0 && (
        <>
          <dt>Attempt</dt>
          <dd class="number">{count(run.attempt)}</dd>
        </>
      )}
      {run.next_attempt && !run.finished && (
        <>
          <dt>Next attempt</dt>
          <dd>
            <time dateTime={run.next_attempt} title={moment(run.next_attempt)}>
              {due(run.next_attempt, time)}
            </time>
          </dd>
        </>
      )}
      <dt>Created</dt>
      <dd>
        <Ago time={run.created_at} />
      </dd>
      <dt>Changed</dt>
      <dd>
        <Ago time={run.at} />
      </dd>
      {run.generation > 1 && (
        <>
          <dt>Generation</dt>
          <dd class="number">{run.generation}</dd>
        </>
      )}
      <dt>ULID</dt>
      <dd class="mono small">{run.ulid}</dd>
      <dt>Instance</dt>
      <dd>
        <Link to={instancePath(run.flow, run.id)}>Show as an instance</Link>
      </dd>
    </dl>
  );
}

function Trouble({ run }: { run: Run }) {
  const errors = run.cleanup_errors ?? [];
  if (!run.error && errors.length === 0) return null;
  // A failure that a retry may still repair is less prominent than a final one.
  const calm = run.state !== 'failed' && run.state !== 'aborted' && errors.length === 0;
  return (
    <div class={`refusal trouble ${calm ? 'calm' : ''}`}>
      <Icon name="warning" />
      <div>
        {run.error && (
          <p>
            <strong>{run.state === 'cancelled' ? 'Cancelled' : run.step}</strong>: {run.error}
            {run.kind && <span class="tag">{run.kind}</span>}
          </p>
        )}
        {errors.map((error) => (
          <p key={error}>
            <strong>Cleanup</strong>: {error}
          </p>
        ))}
      </div>
    </div>
  );
}

function TimelineCard({ timeline }: { timeline: RunTimeline | undefined }) {
  const [range, setRange] = useState('');
  const first = timeline?.spans.findIndex((span) => span.kind === 'attempt') ?? 0;
  // Beside a long wait the steps are too narrow to see.
  const choice = first > 0 && (
    <Segments
      label="Shown"
      value={range}
      options={[
        ['', 'All'],
        ['steps', 'From the first step'],
      ]}
      onChange={setRange}
    />
  );
  return (
    <Card title="Timeline" flush class="overflowing" aside={choice}>
      {!timeline && <Skeleton lines={5} />}
      {timeline?.spans.length === 0 && (
        <Empty icon="timers" title="No activity yet">
          Waits, attempts and pauses between them appear here.
        </Empty>
      )}
      {timeline && timeline.spans.length > 0 && <Gantt spans={range && first > 0 ? timeline.spans.slice(first) : timeline.spans} />}
      {timeline?.truncated && <p class="quiet padded">Older entries were removed by retention.</p>}
    </Card>
  );
}

export function RunPage({ flow: flowName, id }: { flow: string; id: string }) {
  const path = `/v1/flows${at(flowName)}/runs${at(id)}`;
  const flow = useStore(flows)?.find((known) => known.name === flowName);
  // Progress is not logged, so it is asked for; everything else is told by the log, also that it goes on again.
  const over = useRef(false);
  const loaded = useResource<Run>(path, (signal) => get(path, signal), over.current ? 0 : 1000);
  const timeline = useResource<RunTimeline>(`${path}/timeline`, (signal) => get(`${path}/timeline`, signal), over.current ? 0 : 5000);
  over.current = loaded.data?.finished ?? false;
  const changed = () => {
    loaded.touch();
    timeline.touch();
  };
  useLog({ machine: flowName, key: id }, changed);
  const run = loaded.data;
  const spans = timeline.data?.spans ?? [];
  const above = <Link to={`/runs?flow=${encodeURIComponent(flowName)}`}>{flowName}</Link>;
  if (loaded.error && !run) {
    return (
      <>
        <Heading title={id} mono above={above} />
        <Refusal problem={loaded.error} />
        {loaded.error.status === 404 && (
          <Empty icon="runs" title="Retention may have removed this run">
            <Link to="/runs?finished=any">All runs</Link>
          </Empty>
        )}
      </>
    );
  }
  return (
    <>
      <Heading title={id} mono above={above}>
        {run && may('operator') && <Actions run={run} flow={flow} onChanged={changed} />}
        {run && (
          <span class="now" role="status" aria-label="State">
            <RunChip run={run} />
          </span>
        )}
      </Heading>
      {run && <Trouble run={run} />}
      <div class="stack">
        <Card title="Steps">
          {run && flow ? <Stepper flow={flow} run={run} spans={spans} /> : <Skeleton lines={2} />}
          <RoleNote />
        </Card>
        <TimelineCard timeline={timeline.data} />
        <div class="columns run">
          <Card title="Request">{run ? <Code value={run.request} /> : <Skeleton />}</Card>
          <Card title="Response">{!run ? <Skeleton /> : run.response === null ? <p class="quiet">None yet.</p> : <Code value={run.response} />}</Card>
          <Card title="Plan">{run ? <Plan run={run} /> : <Skeleton lines={2} />}</Card>
          <Card title="About">{run ? <Facts run={run} flow={flow} /> : <Skeleton />}</Card>
        </div>
        {spans.length > 0 && (
          <Card title="Timeline as a table" flush>
            <SpanTable spans={spans} />
          </Card>
        )}
      </div>
    </>
  );
}
