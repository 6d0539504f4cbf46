// SPDX-License-Identifier: Apache-2.0
// A machine as a graph: where each state stands is dagre's work, the drawing is ours.
import * as dagre from '@dagrejs/dagre';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { count } from './format';
import { follow } from './router';
import { tint } from './ui';
import type { Counts, Definition } from './types';

interface Point {
  x: number;
  y: number;
}

interface Box extends Point {
  width: number;
  height: number;
}

interface DrawnEdge {
  id: string;
  from: string;
  to: string;
  path: string;
  labels: string[];
  at: Point;
  width: number;
}

interface Drawn {
  width: number;
  height: number;
  nodes: Map<string, Box>;
  edges: DrawnEdge[];
}

/** A step to draw: each has a number of its own. */
export interface Step {
  number: number;
  event: string;
  from: string | undefined;
  to: string;
}

const kStart = '\u0000start';
const kLine = 16;
const kLeastScale = 0.8; // smaller letters are not read any more

const canvas = document.createElement('canvas').getContext('2d');

function textWidth(text: string, font: string): number {
  if (!canvas) return text.length * 7;
  canvas.font = font;
  return Math.ceil(canvas.measureText(text).width);
}

const labelWidth = (text: string): number => textWidth(text, '12px system-ui, sans-serif') + 12;

const labelOf = (row: Definition['transitions'][number]): string => row.event + (row.guarded ? ' ?' : '');

/** Events that leave a state where it is stand in its box. */
function staying(definition: Definition, state: string): string[] {
  return [...new Set(definition.transitions.filter((row) => row.from === state && (row.internal || row.to === state)).map(labelOf))];
}

/** A line through the points with round corners. */
function smooth(points: Point[]): string {
  const [first, ...rest] = points;
  if (!first || rest.length === 0) return '';
  let path = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) path += `L${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
    else path += `Q${point.x.toFixed(1)} ${point.y.toFixed(1)} ${((point.x + next.x) / 2).toFixed(1)} ${((point.y + next.y) / 2).toFixed(1)}`;
  });
  return path;
}

/** Back to the state it came from: a loop above its right corner, whose events stand in the box. */
function loop(box: Box): string {
  const x = box.x + box.width / 2;
  const y = box.y - box.height / 2;
  return `M${x - 30} ${y}C${x - 30} ${y - 34} ${x + 34} ${y - 14} ${x} ${y + 16}`;
}

function layOut(definition: Definition, tall: boolean): Drawn {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: tall ? 'TB' : 'LR', nodesep: tall ? 24 : 30, ranksep: tall ? 34 : 40, edgesep: 16, marginx: 8, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const state of definition.states) {
    const inner = staying(definition, state.name).map((event) => labelWidth(`↻ ${event}`));
    const width = Math.max(116, textWidth(state.name, '600 13px system-ui, sans-serif') + 36, ...inner.map((size) => size + 16));
    graph.setNode(state.name, { width, height: 54 + inner.length * kLine });
  }
  graph.setNode(kStart, { width: 10, height: 10 });
  graph.setEdge(kStart, definition.initial, {});
  const labels = new Map<string, { from: string; to: string; labels: string[] }>();
  for (const row of definition.transitions) {
    if (row.internal) continue;
    const id = `${row.from}\u0000${row.to}`;
    const known = labels.get(id) ?? { from: row.from, to: row.to, labels: [] };
    if (!known.labels.includes(labelOf(row))) known.labels.push(labelOf(row));
    labels.set(id, known);
  }
  for (const edge of labels.values()) {
    if (edge.from === edge.to) continue;
    const width = Math.max(...edge.labels.map(labelWidth));
    graph.setEdge(edge.from, edge.to, { width, height: edge.labels.length * kLine + 4, labelpos: 'c' });
  }
  dagre.layout(graph);
  const nodes = new Map(graph.nodes().map((name: string) => [name, graph.node(name) as Box]));
  const edges: DrawnEdge[] = [...labels.entries()].map(([id, edge]) => {
    const width = Math.max(...edge.labels.map(labelWidth));
    const box = nodes.get(edge.from);
    if (edge.from === edge.to && box) {
      return { id, ...edge, path: loop(box), at: { x: box.x, y: box.y }, width: 0 };
    }
    const drawn = graph.edge(edge.from, edge.to) as { points: Point[]; x: number; y: number };
    return { id, ...edge, path: smooth(drawn.points), at: { x: drawn.x, y: drawn.y }, width };
  });
  const start = graph.edge(kStart, definition.initial) as { points: Point[] };
  edges.push({ id: kStart, from: kStart, to: definition.initial, path: smooth(start.points), labels: [], at: { x: 0, y: 0 }, width: 0 });
  const size = graph.graph() as { width: number; height: number };
  return { width: size.width, height: size.height, nodes, edges };
}

/** The edges that a step may have taken: one where it is known from where. */
function taken(drawn: Drawn, step: Step): DrawnEdge[] {
  const fits = drawn.edges.filter((edge) => edge.to === step.to && edge.labels.some((label) => label.replace(/ \?$/, '') === step.event));
  const exact = fits.filter((edge) => edge.from === step.from);
  return exact.length ? exact : fits.slice(0, 1);
}

/** How long a step is shown, in milliseconds. */
const kTravel = 900;

function Traveller({ path }: { path: string }) {
  const motion = useRef<SVGElement & { beginElement?(): void }>(null);
  useEffect(() => motion.current?.beginElement?.(), []);
  return (
    <circle r="4.5" class="traveller">
      <animateMotion ref={motion as never} dur={`${kTravel}ms`} begin="indefinite" fill="freeze" {...{ path }} />
    </circle>
  );
}

function Edge({ edge, hot }: { edge: DrawnEdge; hot: boolean }) {
  return (
    <g class={`edge ${hot ? 'hot' : ''}`}>
      <path d={edge.path} marker-end={hot ? 'url(#tip-hot)' : 'url(#tip)'} />
      {edge.width > 0 && (
        <>
          <rect x={edge.at.x - edge.width / 2} y={edge.at.y - (edge.labels.length * kLine) / 2 - 1} width={edge.width} height={edge.labels.length * kLine + 2} rx="4" />
          {edge.labels.map((label, line) => (
            <text key={label} x={edge.at.x} y={edge.at.y + (line - (edge.labels.length - 1) / 2) * kLine}>
              {label}
            </text>
          ))}
        </>
      )}
    </g>
  );
}

function Node({ definition, state, box, value }: { definition: Definition; state: string; box: Box; value: number }) {
  const look = tint(definition, state);
  const info = definition.states.find((known) => known.name === state);
  const to = `/instances?machine=${encodeURIComponent(definition.name)}&state=${encodeURIComponent(state)}`;
  const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
  return (
    <a href={to} class={`node ${info?.terminal ? 'terminal' : ''}`} aria-label={`${state}: ${value} instances`} onClick={(event) => follow(event as unknown as MouseEvent, to)}>
      <rect x={left} y={top} width={box.width} height={box.height} rx="9" />
      {info?.terminal && <rect class="inner" x={left + 3} y={top + 3} width={box.width - 6} height={box.height - 6} rx="6" />}
      <circle class={look.class} style={look.style} cx={left + 16} cy={top + 20} r="4" />
      <text class="name" x={left + 26} y={top + 20}>
        {state}
      </text>
      <text class={`count ${value === 0 ? 'none' : ''}`} x={left + 26} y={top + 39}>
        {count(value)}
      </text>
      {staying(definition, state).map((event, line) => (
        <text key={event} class="stays" x={left + 14} y={top + 57 + line * kLine}>
          ↻ {event}
        </text>
      ))}
    </a>
  );
}

/** `steps` are those of the last moments, the newest last. */
export default function Diagram({ definition, counts, steps }: { definition: Definition; counts: Counts; steps: Step[] }) {
  const place = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const resize = new ResizeObserver(() => setRoom(element.clientWidth));
    resize.observe(element);
    return () => resize.disconnect();
  }, []);
  // From left to right where that can be read, else from top to bottom.
  const wide = useMemo(() => layOut(definition, false), [definition]);
  const fits = room === 0 || wide.width * kLeastScale <= room;
  const drawn = useMemo(() => (fits ? wide : layOut(definition, true)), [definition, wide, fits]);
  const moving = steps.flatMap((step) => taken(drawn, step).map((edge) => ({ number: step.number, edge })));
  const hot = new Set(moving.map(({ edge }) => edge.id));
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const start = drawn.nodes.get(kStart);
  // Where it is wider than its place, it is read from its beginning on.
  useEffect(() => {
    const element = place.current;
    if (element && start && room > 0) element.scrollLeft = start.x * Math.max(kLeastScale, Math.min(1, room / drawn.width)) - room / 2;
  }, [drawn, room]);
  return (
    <div class="diagram" ref={place}>
      <svg viewBox={`0 0 ${drawn.width} ${drawn.height}`} width={drawn.width} height={drawn.height} style={{ minWidth: `${drawn.width * kLeastScale}px` }} role="group" aria-label={`State diagram of ${definition.name}`}>
        <defs>
          {['tip', 'tip-hot'].map((id) => (
            <marker key={id} id={id} viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
              <path d="M0 .5L8 4L0 7.5z" />
            </marker>
          ))}
        </defs>
        {drawn.edges.map((edge) => (
          <Edge key={edge.id} edge={edge} hot={hot.has(edge.id)} />
        ))}
        {start && <circle class="start" cx={start.x} cy={start.y} r="5" />}
        {definition.states.map((state) => {
          const box = drawn.nodes.get(state.name);
          return box && <Node key={state.name} definition={definition} state={state.name} box={box} value={counts[state.name] ?? 0} />;
        })}
        {!still && moving.map(({ number, edge }) => <Traveller key={`${number} ${edge.id}`} path={edge.path} />)}
      </svg>
    </div>
  );
}
