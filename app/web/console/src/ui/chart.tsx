// Stacked bars over time, and the figures of the bar below the pointer. It is a part of its own:
// `ChartPart` of `chart_part.tsx` loads it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { theme } from "../shell/theme";

export interface Series {
  label: string;
  values: number[];
}

export interface ChartProps {
  // What it shows, for screen readers; its figures are in a table as well.
  label: string;
  // A label for each bar, short below the chart and in full above it.
  ticks: string[];
  names: string[];
  series: Series[];
  format: (value: number) => string;
  // What stands above the chart while the pointer is elsewhere.
  all: string;
}

const HEIGHT = 240;
const TICK_WIDTH = 72;
const AXIS_WIDTH = 60;
const AXIS_HEIGHT = 28;
const GAP = 0.28;

export default function Chart(props: ChartProps) {
  const area = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const [index, setIndex] = useState<number | null>(null);
  const scheme = useScheme();
  useEffect(() => {
    if (!area.current || !legend.current) return undefined;
    const chart = new uPlot(
      optionsOf(props, area.current, legend.current, setIndex),
      stack(props),
      area.current,
    );
    const observer = new ResizeObserver(() => {
      const width = area.current?.clientWidth ?? 0;
      if (width && width !== chart.width) chart.setSize({ width, height: HEIGHT });
    });
    observer.observe(area.current);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [JSON.stringify([props.label, props.ticks, props.series]), scheme]);
  return (
    <div class="chart">
      <div class="legend" ref={legend}>
        <strong>{(index !== null && props.names[index]) || props.all}</strong>
        <ul class="legend">
          {props.series.map(({ label, values }, position) => (
            <li key={position}>
              <span class={`swatch series-${position}`} />
              <span class="clip soft" dir="auto">{label}</span>
              {props.format(
                index === null ? values.reduce((a, b) => a + b, 0) : values[index] ?? 0,
              )}
            </li>
          ))}
        </ul>
      </div>
      <div class="chart-area" ref={area} role="img" aria-label={props.label} />
    </div>
  );
}

// Each series is drawn over those above it, so that their upper ends remain visible.
function stack({ ticks, series }: ChartProps): uPlot.AlignedData {
  const sums: number[][] = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(values.map((value, index) => value + (below?.[index] ?? 0)));
  }
  return [ticks.map((_, index) => index), ...sums.reverse()];
}

function optionsOf(
  { ticks, series, format }: ChartProps,
  area: HTMLElement,
  legend: HTMLElement,
  onIndex: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(area);
  const colors = [...legend.querySelectorAll(".swatch")].map((swatch) =>
    getComputedStyle(swatch).backgroundColor
  );
  const { soft, line } = axisColors(legend);
  const axis = { stroke: soft, font: `12px ${style.fontFamily}`, ticks: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [1 - GAP, 56], radius: 0.12 });
  return {
    width: area.clientWidth,
    height: HEIGHT,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    scales: {
      x: { time: false, range: () => [-0.6, ticks.length - 0.4] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        size: AXIS_HEIGHT,
        grid: { show: false },
        splits: (chart) => spread(ticks.length, chart.width),
        values: (_, splits) => splits.map((split) => ticks[split] ?? ""),
      },
      {
        ...axis,
        size: AXIS_WIDTH,
        grid: { stroke: line, width: 1 },
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...series.map((_, position) => {
        const color = colors[series.length - 1 - position] ?? soft;
        return {
          fill: color,
          stroke: color,
          width: 0,
          points: { show: false },
          ...(bars ? { paths: bars } : {}),
        };
      }),
    ],
    hooks: { setCursor: [(chart) => onIndex(chart.cursor.idx ?? null)] },
  };
}

function axisColors(legend: HTMLElement): { soft: string; line: string } {
  const label = legend.querySelector(".soft") ?? legend;
  const soft = getComputedStyle(label).color;
  return { soft, line: `color-mix(in srgb, ${soft} 22%, transparent)` };
}

// The positions of as many labels as have room.
function spread(count: number, width: number): number[] {
  const step = Math.max(1, Math.ceil(count / Math.max(1, Math.floor(width / TICK_WIDTH))));
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step);
}

// Canvases do not follow the colours of the page by themselves.
function useScheme(): string {
  const [isDark, setDark] = useState(false);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const update = () => setDark(query.matches);
    update();
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  return `${theme.value} ${isDark}`;
}
