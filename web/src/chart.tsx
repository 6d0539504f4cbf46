// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { rate } from './format';
import { samples } from './live';
import { colour, onColours } from './theme';

const kWindow = 120; // seconds

function data(): uPlot.AlignedData {
  const known = samples.get();
  return [known.map((sample) => sample.at), known.map((sample) => sample.rate)];
}

function options(width: number, height: number): uPlot.Options {
  const line = colour('chart-line');
  const text = colour('chart-text');
  const grid = { stroke: colour('chart-grid'), width: 1 };
  const font = '11px system-ui, sans-serif';
  return {
    width,
    height,
    padding: [12, 26, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7, fill: line } },
    scales: {
      x: { time: true, range: () => [Date.now() / 1000 - kWindow, Date.now() / 1000] },
      y: { range: (_plot, _low, high) => [0, Math.max(4, high * 1.15)] },
    },
    axes: [
      { stroke: text, font, grid: { show: false }, ticks: { show: false }, size: 26, space: 90, values: (_plot, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString('en-GB')) },
      { stroke: text, font, grid, ticks: { show: false }, size: 44, space: 36, values: (_plot, splits) => splits.map((value) => rate(value).replace(/\.0$/, '')) },
    ],
    series: [
      {},
      { stroke: line, width: 1.75, fill: colour('chart-fill'), points: { show: false }, ...(uPlot.paths.spline ? { paths: uPlot.paths.spline() } : {}) },
    ],
  };
}

/** Transitions per second, of the last two minutes. `onHover` tells the value under the pointer. */
export default function Chart({ onHover }: { onHover(text: string): void }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    let plot: uPlot | undefined;
    const hover = (drawn: uPlot) => {
      const value = drawn.cursor.idx == null ? undefined : drawn.data[1]?.[drawn.cursor.idx];
      onHover(value == null ? '' : `${rate(value)}/s`);
    };
    // A place that is not laid out has no size to draw in.
    const drawable = () => element.clientWidth > 0 && element.clientHeight > 0;
    const make = () => {
      plot?.destroy();
      plot = undefined;
      if (drawable()) plot = new uPlot({ ...options(element.clientWidth, element.clientHeight), hooks: { setCursor: [hover] } }, data(), element);
    };
    make();
    const resize = new ResizeObserver(() => {
      if (!plot) make();
      else if (drawable()) plot.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    resize.observe(element);
    const unfollow = [samples.follow(() => plot?.setData(data())), onColours(make)];
    return () => {
      for (const stop of unfollow) stop();
      resize.disconnect();
      plot?.destroy();
    };
  }, []);
  return <div ref={place} class="chart" role="img" aria-label="Transitions per second in the last two minutes" />;
}
