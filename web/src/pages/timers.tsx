// SPDX-License-Identifier: Apache-2.0
import { get, query } from '../api';
import { due, moment } from '../format';
import { machines, now, useResource } from '../live';
import { Listed } from '../paging';
import { refine, usePlace } from '../router';
import { useStore } from '../store';
import type { SetTimer } from '../types';
import { Card, Empty, Heading, KeyLink, Select, StateBadge } from '../ui';

export function TimersPage() {
  const place = usePlace();
  const known = useStore(machines);
  const time = useStore(now);
  const machine = place.query.get('machine') ?? '';
  const cursor = place.query.get('cursor') ?? '';
  const asked = `/v1/timers${query({ machine, cursor })}`;
  const page = useResource<{ timers: SetTimer[]; next?: string }>(asked, (signal) => get(asked, signal), 1000);
  const timers = page.data?.timers.toSorted((a, b) => Date.parse(a.due) - Date.parse(b.due));
  return (
    <>
      <Heading title="Timers" />
      <Card flush>
        <div class="filters">
          <Select label="Machine" any="All machines" value={machine} options={known?.map(({ name }) => name) ?? []} onChange={(value) => refine(place, { machine: value })} />
        </div>
        <Listed
          page={page}
          rows={timers}
          place={place}
          note="Earliest first, from a thousand instances at a time"
          none={
            <Empty icon="timers" title="No timers">
              Instances set timers when they wait for a deadline.
            </Empty>
          }
        >
          <div class="table-place">
            <table>
              <thead>
                <tr>
                  <th>Due</th>
                  <th>Timer</th>
                  <th class="spare">Sends</th>
                  <th>Instance</th>
                  <th class="spare">State</th>
                </tr>
              </thead>
              <tbody>
                {timers?.map((timer) => (
                  <tr key={`${timer.machine} ${timer.key} ${timer.name}`}>
                    <td class="number">
                      <time dateTime={timer.due} title={moment(timer.due)}>
                        {due(timer.due, time)}
                      </time>
                    </td>
                    <td>{timer.name}</td>
                    <td class="spare">{timer.event}</td>
                    <td>
                      <KeyLink machine={timer.machine} name={timer.key} />
                    </td>
                    <td class="spare">
                      <StateBadge machine={timer.machine} state={timer.state} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Listed>
      </Card>
    </>
  );
}
