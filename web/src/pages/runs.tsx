// SPDX-License-Identifier: Apache-2.0
import { get, may, query } from '../api';
import { ordinarySteps, positionOf, runStates } from '../flow';
import { count } from '../format';
import { flows, useLog, useResource } from '../live';
import { Listed } from '../paging';
import { Link, refine, usePlace } from '../router';
import { useStore } from '../store';
import type { Flow, Run, RunPage } from '../types';
import { Ago, Card, Empty, Heading, NoFlows, ProgressBar, RunChip, RunLink, Segments, Select, Skeleton } from '../ui';
import { StartRun } from './start_run';

const kPage = 50;

function StepCell({ run, flow }: { run: Run; flow: Flow | undefined }) {
  const position = positionOf(run, flow);
  return (
    <>
      <div class="step-line">
        <span class="step-name">{run.step}</span>
        {position && (
          <span class="quiet number">
            {position.number} of {position.of}
          </span>
        )}
        {run.progress !== undefined && !run.finished && <ProgressBar value={run.progress} label={`Progress of ${run.step}`} />}
      </div>
      {run.error && (
        <div class={`one-line small-text ${run.state === 'cancelled' ? 'quiet' : 'error-text'}`} title={run.error}>
          {run.error}
        </div>
      )}
    </>
  );
}

function Rows({ runs, known, oneFlow }: { runs: Run[]; known: Flow[]; oneFlow: boolean }) {
  return (
    <div class="table-place">
      <table class="runs">
        <thead>
          <tr>
            <th>Run</th>
            {!oneFlow && <th class="spare">Flow</th>}
            <th>Status</th>
            <th class="fill">Step</th>
            <th class="end spare">Attempt</th>
            <th class="end">Age</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={`${run.flow} ${run.id}`}>
              <td class="run-id">
                <RunLink run={run} />
              </td>
              {!oneFlow && (
                <td class="spare">
                  <Link to={`/runs?flow=${encodeURIComponent(run.flow)}`}>{run.flow}</Link>
                </td>
              )}
              <td>
                <RunChip run={run} />
              </td>
              <td class="fill">
                <StepCell run={run} flow={known.find((flow) => flow.name === run.flow)} />
              </td>
              <td class="end number spare">{run.attempt > 0 ? count(run.attempt) : ''}</td>
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

/** The steps of each flow. */
function FlowList({ known }: { known: Flow[] }) {
  return (
    <ul class="rows">
      {known.map((flow) => (
        <li key={flow.name}>
          <div>
            <strong>{flow.name}</strong>
            <p class="quiet">{ordinarySteps(flow).map((step) => step.name).join(' → ')}</p>
          </div>
          <Link to={`/machines/${encodeURIComponent(flow.name)}`} class="button">
            Diagram
          </Link>
        </li>
      ))}
    </ul>
  );
}

function NoRuns({ filtered, all }: { filtered: boolean; all: boolean }) {
  if (filtered) {
    return (
      <Empty icon="runs" title="No matching runs">
        <Link to="/runs?finished=any">Show all</Link>
      </Empty>
    );
  }
  return (
    <Empty icon="runs" title={all ? 'No runs yet' : 'No runs in progress'}>
      Programs start runs with Flows::start or POST /v1/flows/{'{flow}'}/runs; operators use the button above. {!all && <Link to="/runs?finished=true">Show finished runs</Link>}
    </Empty>
  );
}

export function RunsPage() {
  const place = usePlace();
  const known = useStore(flows);
  const [flow, state, finished, cursor] = ['flow', 'state', 'finished', 'cursor'].map((name) => place.query.get(name) ?? '') as [string, string, string, string];
  // Finished runs only grow in number, so the others are what is shown first.
  const wanted = state || finished === 'any' ? '' : finished || 'false';
  const asked = query({ flow, state, finished: wanted, order: 'newest', cursor, limit: kPage });
  const some = Boolean(known?.length);
  const page = useResource<RunPage>(some ? `/v1/runs${asked}` : '', (signal) => get(`/v1/runs${asked}`, signal), 2000);
  // One stream: of the flow that is looked at, or of everything where there are several.
  const only = flow || (known?.length === 1 ? (known[0]?.name ?? '') : '');
  useLog(only ? { machine: only } : {}, page.touch, (entry) => Boolean(known?.some(({ name }) => name === entry.machine)));
  return (
    <>
      <Heading title="Runs">{known && known.length > 0 && may('operator') && <StartRun known={known} chosen={flow} />}</Heading>
      <Card flush>
        {known?.length === 0 && <NoFlows />}
        {some && (
          <div class="filters" role="search">
            <Select label="Flow" any="All flows" value={flow} options={known?.map(({ name }) => name) ?? []} onChange={(value) => refine(place, { flow: value })} />
            <Select
              label="State"
              any="All states"
              value={state}
              options={runStates.map((name) => [name, name.replaceAll('_', ' ')])}
              onChange={(value) => refine(place, { state: value, finished: '' })}
            />
            {!state && (
              <Segments
                label="Progress"
                value={finished}
                options={[
                  ['', 'In progress'],
                  ['true', 'Finished'],
                  ['any', 'All'],
                ]}
                onChange={(value) => refine(place, { finished: value })}
              />
            )}
          </div>
        )}
        {!known && <Skeleton lines={8} />}
        {some && (
          <Listed
            page={page}
            rows={page.data?.runs}
            place={place}
            note="Newest first"
            none={<NoRuns filtered={Boolean(flow || state || finished === 'true')} all={finished === 'any'} />}
          >
            <Rows runs={page.data?.runs ?? []} known={known ?? []} oneFlow={flow !== ''} />
          </Listed>
        )}
      </Card>
      {known && known.length > 0 && (
        <div class="below">
          <Card title="Flows" flush>
            <FlowList known={known} />
          </Card>
        </div>
      )}
    </>
  );
}
