/** A chart over time, drawn by uPlot: lines, or areas on top of one another. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { useSize } from "../app/hooks";
import { useStore } from "../app/store";
import { colour, isDark } from "../app/theme";
import type { Column } from "../api/types";

export interface Series {
  name: string;
  values: Column;
  /** The name of a colour of the style sheet. */
  colour?: string;
}

export const SERIES_COLOURS = [
  "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8",
];

interface Props {
  title: string;
  /** Milliseconds since 1970. */
  times: number[];
  series: Series[];
  format: (value: number | null) => string;
  stacked?: boolean;
  height?: number;
  /** Event times are in UTC; times of the service are local. */
  utc?: boolean;
  /** How far apart ticks may be, where the usual tens read badly. */
  steps?: number[];
  /** Show points where there is only one value in a row. */
  points?: boolean;
}

export function Chart(props: Props): JSX.Element {
  const { times, series, stacked = false, height = 150 } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [box, size] = useSize<HTMLDivElement>();
  const [at, setAt] = useState<number | null>(null);
  const dark = useStore(isDark);
  const names = series.map((each) => each.name).join("\n");
  const now = useRef(props);
  now.current = props;
  const data = useMemo(() => dataOf(times, series, stacked), [times, series, stacked]);

  useEffect(() => {
    const place = host.current;
    if (!place || !size.width) return;
    const made = new uPlot(optionsOf(() => now.current, size.width, height, setAt), data, place);
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [names, dark, stacked, height, size.width > 0]);

  useEffect(() => {
    plot.current?.setData(data);
  }, [data]);

  useEffect(() => {
    if (size.width) plot.current?.setSize({ width: size.width, height });
  }, [size.width, height]);

  const shown = at !== null && at < times.length ? at : times.length - 1;
  const said = series
    .map((each) => `${each.name} ${props.format(each.values[shown] ?? null)}`)
    .join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{props.title}</span>
        <span class="legend">
          {series.slice(0, 12).map((each, number) => (
            <span key={each.name} class="legend-item" title={each.name}>
              <i class={`swatch ${each.colour ?? SERIES_COLOURS[number % SERIES_COLOURS.length]}`} />
              <span class="legend-name">{each.name}</span> <b>{props.format(each.values[shown] ?? null)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div
        class="plot"
        ref={(element) => {
          host.current = element;
          box(element);
        }}
        role="img"
        aria-label={`${props.title}: ${said || "no values yet"}`}
        style={{ height: `${height}px` }}
      />
    </figure>
  );
}

function dataOf(times: number[], series: Series[], stacked: boolean): uPlot.AlignedData {
  const seconds = times.map((each) => each / 1000);
  if (!stacked) return [seconds, ...series.map((each) => each.values)];
  const tops: Column[] = [];
  let below: Column = times.map(() => 0);
  for (const each of series) {
    below = below.map((value, place) => {
      const own = each.values[place];
      return own == null ? (value ?? null) : (value ?? 0) + own;
    });
    tops.push(below);
  }
  // The highest area is drawn first, and the others cover it.
  return [seconds, ...tops.reverse()];
}

function optionsOf(
  propsNow: () => Props,
  width: number,
  height: number,
  onCursor: (at: number | null) => void,
): uPlot.Options {
  const props = propsNow();
  const axis = {
    stroke: () => colour("ink-soft"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { show: false },
  };
  const drawn = props.series.map((each, number) => {
    const name = each.colour ?? SERIES_COLOURS[number % SERIES_COLOURS.length] ?? "series-1";
    return {
      label: each.name,
      width: 1.6,
      stroke: () => colour(name),
      ...(props.stacked ? { fill: () => colour(name) } : {}),
      points: { show: props.points ?? false, size: 4 },
      spanGaps: true,
    } satisfies uPlot.Series;
  });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    ...(props.utc ? { tzDate: (ts: number) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC") } : {}),
    scales: { y: { range: (_plot, low, high) => rangeOf(propsNow(), low, high) } },
    axes: [
      { ...axis, space: 70, size: 26, values: TIMES },
      {
        ...axis,
        size: 62,
        space: 32,
        ...(props.steps ? { incrs: props.steps } : {}),
        values: (_plot, ticks) => ticks.map((each) => props.format(each)),
      },
    ],
    series: [{}, ...(props.stacked ? drawn.reverse() : drawn)],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)] },
  };
}

// As uPlot's own, but on the clock of 24 hours.
const TIMES: uPlot.Axis.Values = [
  [3600 * 24, "{D} {MMM}", null, null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [60, "{HH}:{mm}", null, null, null, null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
  [0.001, ":{ss}.{fff}", null, null, null, null, null, null, 1],
];

export const WHOLE = [1, 2, 5].flatMap((each) => [each, each * 10, each * 100, each * 1e3, each * 1e4, each * 1e5, each * 1e6]).sort((a, b) => a - b);
export const BINARY = Array.from({ length: 36 }, (_each, power) => 2 ** (power + 1));

function rangeOf(props: Props, low: number | null, high: number | null): [number, number] {
  if (low == null || high == null) return [0, 1];
  // Rates and sizes begin at nothing; answers may be anywhere.
  if (!props.points) return [0, high > 0 ? usual(props, high) * 1.1 : 1];
  const room = (high - low || Math.abs(high) || 1) * 0.1;
  return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
}

/** The first batch compiles; one such value should not flatten all others. */
function usual(props: Props, high: number): number {
  const totals = props.times.map((_time, place) => {
    const values = props.series.map((each) => each.values[place] ?? 0);
    return props.stacked ? values.reduce((sum, each) => sum + each, 0) : Math.max(...values);
  });
  const most = totals.sort((a, b) => a - b)[Math.floor(totals.length * 0.97)] ?? high;
  return most > 0 && high > 4 * most ? most * 1.6 : high;
}
