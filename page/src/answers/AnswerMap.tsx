/** Answers on a map without tiles: a grid of degrees, a scale, and points coloured by a value. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Answer } from "../api/types";
import { useSize } from "../app/hooks";
import { numberOf } from "../rdf/terms";
import { Empty } from "../ui/basics";
import * as format from "../ui/format";
import { type GeoPoint, isPlaceName, placesOf } from "./places";

const HEIGHT = 420;
const MARGIN = 34;
const EARTH_M = 40_075_016.7;
const MOST_POINTS = 600;
const MOST_NAMES = 40;

export function AnswerMap(props: { answers: Answer[]; variables: string[]; numeric: string[] }): JSX.Element {
  const { answers, variables } = props;
  const values = props.numeric.filter((each) => !isPlaceName(each));
  const [picked, setPicked] = useState<string | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const [attach, size] = useSize<HTMLDivElement>();
  const points = useMemo(() => placesOf(variables, answers).slice(-MOST_POINTS), [answers]);
  const variable = picked && values.includes(picked) ? picked : (values[0] ?? null);
  const width = Math.max(280, size.width);
  const view = useMemo(() => viewOf(points, width), [extentOf(points).join(), width]);
  if (!points.length) return <Empty>No answer has a place.</Empty>;
  const numbers = points.map((each) => (variable ? numberOf(each.answer.bindings?.[variable]) : null));
  const known = numbers.filter((each): each is number => each !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const newest = points.reduce((most, each) => Math.max(most, each.t), -Infinity);
  const shown = points.find((each) => each.key === chosen);
  return (
    <>
      <div class="row">
        {values.length > 1 && (
          <label class="inline">
            Colour{" "}
            <select value={variable ?? ""} onChange={(event) => setPicked(event.currentTarget.value)}>
              {values.map((each) => (
                <option key={each} value={each}>
                  ?{each}
                </option>
              ))}
            </select>
          </label>
        )}
        {variable && known.length > 0 && (
          <span class="scale" aria-label={`Colours of ?${variable} from ${low} to ${high}`}>
            ?{variable} {rounded(low)} <span class="ramp" /> {rounded(high)}
          </span>
        )}
        <span class="hint">Fainter points are older. Event time {format.instant(newest)} UTC.</span>
      </div>
      <div ref={attach}>
        <svg class="map" width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="group" aria-label="Map of the answers">
          {view.lines.map((line) => (
            <g key={line.id} class="graticule">
              <path d={line.path} />
              <text x={line.x} y={line.y} text-anchor={line.anchor}>
                {line.text}
              </text>
            </g>
          ))}
          {points.map((each, place) => {
            const [x, y] = view.at(each);
            const value = numbers[place] ?? null;
            const part = value === null || high === low ? 0.5 : (value - low) / (high - low);
            const words = `${each.name}${value === null ? "" : `, ${variable} ${rounded(value)}`}`;
            return (
              <g
                key={each.key}
                class={`point ${each.key === chosen ? "chosen" : ""}`}
                transform={`translate(${x} ${y})`}
                role="button"
                tabindex={0}
                aria-label={words}
                onClick={() => setChosen(each.key === chosen ? null : each.key)}
                onKeyDown={(event) => {
                  if (event.key !== "Enter" && event.key !== " ") return;
                  event.preventDefault();
                  setChosen(each.key === chosen ? null : each.key);
                }}
              >
                <title>{words}</title>
                <circle r="7" style={{ fill: value === null ? "var(--main)" : ramp(part) }} opacity={each.t === newest ? 1 : 0.4} />
                {(points.length <= MOST_NAMES || each.key === chosen) && view.named.has(each.key) && (
                  <text x="11" y="4">
                    {each.name}
                  </text>
                )}
              </g>
            );
          })}
          <g class="scale-bar" transform={`translate(${width - view.bar.width - 14} ${HEIGHT - 10})`}>
            <path d={`M0,-5 V0 H${view.bar.width} V-5`} />
            <text x={view.bar.width / 2} y="-7" text-anchor="middle">
              {view.bar.text}
            </text>
          </g>
        </svg>
      </div>
      {shown && (
        <p class="hint" role="status">
          <strong>{shown.name}</strong>: {shown.lat.toFixed(5)}, {shown.long.toFixed(5)}
          {values.map((each) => {
            const value = numberOf(shown.answer.bindings?.[each]);
            return value === null ? "" : `, ?${each} ${rounded(value)}`;
          })}{" "}
          at {format.instant(shown.t)} UTC
        </p>
      )}
    </>
  );
}

function rounded(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** From blue over yellow to red, as the legend mixes them. */
function ramp(part: number): string {
  const [from, to] =
    part < 0.5 ? ["hsl(215deg 78% 46%)", "hsl(48deg 78% 54%)"] : ["hsl(48deg 78% 54%)", "hsl(0deg 78% 46%)"];
  const share = (part < 0.5 ? part : part - 0.5) * 200;
  return `color-mix(in srgb, ${to} ${share.toFixed(0)}%, ${from})`;
}

function extentOf(points: GeoPoint[]): [number, number, number, number] {
  const found: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { lat, long } of points) {
    found[0] = Math.min(found[0], long);
    found[1] = Math.min(found[1], lat);
    found[2] = Math.max(found[2], long);
    found[3] = Math.max(found[3], lat);
  }
  return found;
}

/** A plate carrée that is true in the middle: good from a street to a continent. */
function viewOf(points: GeoPoint[], width: number) {
  const [west, south, east, north] = extentOf(points);
  const middle = { lat: (south + north) / 2, long: (west + east) / 2 };
  const squeeze = Math.max(0.05, Math.cos((middle.lat * Math.PI) / 180));
  const least = 0.002;
  const scale = Math.min(
    (width - 2 * MARGIN - 60) / Math.max(least, (east - west) * squeeze),
    (HEIGHT - 2 * MARGIN) / Math.max(least, north - south),
  );
  const x = (long: number) => width / 2 + (long - middle.long) * squeeze * scale;
  const y = (lat: number) => HEIGHT / 2 - (lat - middle.lat) * scale;
  const at = (point: GeoPoint): [number, number] => [x(point.long), y(point.lat)];

  const step = stepOf(90 / scale);
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const lines: { id: string; path: string; x: number; y: number; anchor: "start" | "middle"; text: string }[] = [];
  const span = width / squeeze / scale / 2;
  for (let n = Math.ceil((middle.long - span) / step); n * step < middle.long + span; n += 1) {
    const here = x(n * step);
    lines.push({ id: `x${n}`, path: `M${here},0V${HEIGHT}`, x: here, y: 12, anchor: "middle", text: degrees(n * step, digits, "E", "W") });
  }
  const rise = HEIGHT / scale / 2;
  for (let n = Math.ceil((middle.lat - rise) / step); n * step < middle.lat + rise; n += 1) {
    const here = y(n * step);
    lines.push({ id: `y${n}`, path: `M0,${here}H${width}`, x: 4, y: here - 4, anchor: "start", text: degrees(n * step, digits, "N", "S") });
  }

  const metres = stepOf((EARTH_M / 360 / scale) * 110);
  const bar = {
    width: (metres * scale * 360) / EARTH_M,
    text: metres >= 1000 ? `${metres / 1000} km` : `${metres} m`,
  };
  return { at, lines, bar, named: namedOf(points, at) };
}

/** Names that would cover others are left out. */
function namedOf(points: GeoPoint[], at: (point: GeoPoint) => [number, number]): Set<string> {
  const taken: [number, number, number][] = [];
  const found = new Set<string>();
  for (const each of points) {
    const [x, y] = at(each);
    const right = x + 16 + each.name.length * 6.4;
    if (taken.some(([left, top, end]) => Math.abs(top - y) < 13 && x < end && left < right)) continue;
    taken.push([x, y, right]);
    found.add(each.key);
  }
  return found;
}

function stepOf(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const part = least / power;
  return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

function degrees(value: number, digits: number, plus: string, minus: string): string {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? "0°" : `${text}° ${value > 0 ? plus : minus}`;
}
