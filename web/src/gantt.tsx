// SPDX-License-Identifier: Apache-2.0
// What took time in a run, as bars over a common axis, and the same as a table.
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Bar, type BarLook, chartOf, lookOf, ticksOf } from './flow';
import { clockTime, duration, moment } from './format';
import { now } from './live';
import { useStore } from './store';
import type { RunSpan } from './types';

const kHead = 24; // of the axis
const kBar = 16;
const kEdge = 10;

const kindText: Record<RunSpan['kind'], string> = {
  delay: 'delay',
  wait: 'waiting for another run',
  queue: 'queued',
  attempt: 'attempt',
  backoff: 'back-off',
  join: 'waiting for children',
  pause: 'paused',
};

export function nameOfSpan(span: RunSpan): string {
  return span.kind === 'attempt' ? `attempt ${span.attempt}` : kindText[span.kind];
}

export function outcomeOf(span: RunSpan): string {
  if (span.to) return span.outcome.replaceAll('_', ' ');
  return span.kind === 'attempt' ? 'running' : 'in progress';
}

const lengthOf = (span: RunSpan, time: number) => duration((span.to ? Date.parse(span.to) : time) - Date.parse(span.from));

function describe(span: RunSpan, time: number): string {
  const parts = [span.step, nameOfSpan(span), outcomeOf(span), lengthOf(span, time), `from ${clockTime(span.from)}`];
  if (span.to) parts.push(`to ${clockTime(span.to)}`);
  if (span.error) parts.push(span.error);
  return parts.filter(Boolean).join(', ');
}

function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [place, width];
}

function Tip({ bar, time, left, top, width }: { bar: Bar; time: number; left: number; top: number; width: number }) {
  const { span } = bar;
  const wide = Math.min(300, width);
  const x = Math.max(0, Math.min(left - wide / 2, width - wide));
  return (
    <div class="gantt-tip" role="tooltip" style={{ left: `${x}px`, top: `${top}px`, width: `${wide}px` }}>
      <strong>
        {span.step || nameOfSpan(span)}
        {span.step && <span class="quiet"> {nameOfSpan(span)}</span>}
      </strong>
      <dl>
        <dt>From</dt>
        <dd class="number">{clockTime(span.from)}</dd>
        <dt>To</dt>
        <dd class="number">{span.to ? clockTime(span.to) : 'now'}</dd>
        <dt>Duration</dt>
        <dd class="number">{lengthOf(span, time)}</dd>
        {outcomeOf(span) && (
          <>
            <dt>Outcome</dt>
            <dd>{outcomeOf(span)}</dd>
          </>
        )}
      </dl>
      {span.error && <p class="error-text">{span.error}</p>}
    </div>
  );
}

const legend: [BarLook, string][] = [
  ['done', 'done'],
  ['active', 'runs'],
  ['failed', 'failed'],
  ['backoff', 'back-off'],
  ['idle', 'waits'],
  ['cut', 'interrupted'],
];

/** One stop of the Tab key; arrow keys move between bars, Escape closes what is told of one. */
export function Gantt({ spans }: { spans: RunSpan[] }) {
  const time = useStore(now);
  const [place, width] = useWidth();
  const [chosen, setChosen] = useState(0);
  const [told, setTold] = useState<number>();
  const chart = chartOf(spans, Math.max(time, ...spans.map((span) => Date.parse(span.to ?? span.from))));
  const narrow = width < 520;
  const names = narrow ? 0 : Math.min(180, Math.max(64, ...chart.rows.map((row) => row.length * 7.2 + 18)));
  const row = narrow ? 40 : 30;
  const height = kHead + chart.rows.length * row + 4;
  // While it runs there is room to the right of what is now.
  const length = (chart.end - chart.begin) * (chart.open ? 1.06 : 1);
  const room = Math.max(1, width - names - kEdge * 2);
  const x = (at: number) => names + kEdge + ((at - chart.begin) / length) * room;
  const top = (bar: Bar) => kHead + bar.row * row + (narrow ? 18 : (row - kBar) / 2);
  const active = Math.min(chosen, chart.bars.length - 1);
  const move = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -chart.bars.length, End: chart.bars.length };
    const step = steps[event.key];
    if (event.key === 'Escape') setTold(undefined);
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(chart.bars.length - 1, Math.max(0, active + step));
    setChosen(next);
    place.current?.querySelector<SVGElement>(`[data-bar="${next}"]`)?.focus();
  };
  const shown = told === undefined ? undefined : chart.bars[told];
  return (
    <div class="gantt">
      <div class="gantt-place" ref={place}>
        {width > 0 && (
          <svg width={width} height={height} role="group" aria-label="Timeline; arrow keys move between bars" onKeyDown={move}>
            <defs>
              <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                <rect width="6" height="6" class="hatch-ground" />
                <rect width="3" height="6" class="hatch-line" />
              </pattern>
            </defs>
            <g aria-hidden="true">
              {ticksOf(length, Math.max(2, Math.floor(room / 84))).map((tick) => (
                <g key={tick.at} class="tick">
                  <line x1={x(chart.begin + tick.at)} x2={x(chart.begin + tick.at)} y1={kHead - 4} y2={height} />
                  <text x={x(chart.begin + tick.at)} y={kHead - 10} text-anchor={tick.at === 0 ? 'start' : x(chart.begin + tick.at) > width - 24 ? 'end' : 'middle'}>
                    {tick.text}
                  </text>
                </g>
              ))}
              {chart.rows.map((name, index) => (
                <g key={name} class={`gantt-row ${name === 'before' || name === 'paused' ? 'aside' : ''}`}>
                  <line x1={0} x2={width} y1={kHead + index * row} y2={kHead + index * row} />
                  <text x={narrow ? kEdge : 2} y={kHead + index * row + (narrow ? 13 : row / 2 + 4)}>
                    {name.length > 24 ? `${name.slice(0, 23)}…` : name}
                  </text>
                </g>
              ))}
            </g>
            {chart.bars.map((bar, index) => (
              <rect
                key={index}
                class={`gantt-bar ${bar.look}`}
                data-bar={index}
                role="img"
                aria-label={describe(bar.span, time)}
                tabIndex={index === active ? 0 : -1}
                x={x(bar.from)}
                y={top(bar)}
                width={Math.max(3, x(bar.to) - x(bar.from))}
                height={kBar}
                rx={Math.min(4, Math.max(3, x(bar.to) - x(bar.from)) / 2)}
                onMouseEnter={() => setTold(index)}
                onMouseLeave={() => setTold(undefined)}
                onFocus={() => {
                  setChosen(index);
                  setTold(index);
                }}
                onBlur={() => setTold(undefined)}
              />
            ))}
            {chart.open && <line class="gantt-now" x1={x(chart.end)} x2={x(chart.end)} y1={kHead - 6} y2={height} />}
          </svg>
        )}
        {shown && <Tip bar={shown} time={time} left={(x(shown.from) + x(shown.to)) / 2} top={top(shown) + kBar + 8} width={width} />}
      </div>
      <div class="gantt-foot">
        <span class="quiet number">
          0 is {moment(new Date(chart.begin).toISOString())} · {duration(chart.end - chart.begin)} {chart.open ? 'until now' : 'in all'}
        </span>
        <ul class="gantt-legend" aria-hidden="true">
          {legend
            .filter(([look]) => chart.bars.some((bar) => bar.look === look))
            .map(([look, text]) => (
              <li key={look}>
                <i class={look} />
                {text}
              </li>
            ))}
        </ul>
      </div>
    </div>
  );
}

export function SpanTable({ spans }: { spans: RunSpan[] }) {
  const time = useStore(now);
  return (
    <div class="table-place">
      <table class="spans" aria-label="Timeline">
        <thead>
          <tr>
            <th>Step</th>
            <th>Activity</th>
            <th class="spare">From</th>
            <th class="spare">To</th>
            <th class="end">Duration</th>
            <th>Outcome</th>
          </tr>
        </thead>
        <tbody>
          {spans.map((span, index) => (
            <Fragment key={index}>
              <tr>
                <td>{span.step || <span class="quiet">–</span>}</td>
                <td class="quiet">{nameOfSpan(span)}</td>
                <td class="number spare">
                  <time dateTime={span.from} title={moment(span.from)}>
                    {clockTime(span.from)}
                  </time>
                </td>
                <td class="number spare">{span.to && <time dateTime={span.to}>{clockTime(span.to)}</time>}</td>
                <td class="end number">{lengthOf(span, time)}</td>
                <td>
                  <span class={`outcome ${lookOf(span)}`}>{outcomeOf(span)}</span>
                </td>
              </tr>
              {span.error && (
                <tr class="span-error">
                  <td colSpan={6} class="error-text">
                    {span.error}
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}
