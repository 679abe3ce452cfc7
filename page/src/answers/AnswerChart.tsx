/** Numbers of answers over event time, one line for each thing that they are about. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Answer, Column } from "../api/types";
import { numberOf } from "../rdf/terms";
import { Chart, type Series } from "../ui/Chart";
import { isPlaceName } from "./places";
import { subjectOf } from "./numbers";

const MOST_LINES = 12;
const MOST_INSTANTS = 240;

export function AnswerChart(props: { answers: Answer[]; variables: string[]; numeric: string[] }): JSX.Element {
  const { answers, variables, numeric } = props;
  const drawable = numeric.filter((each) => !isPlaceName(each));
  const choices = drawable.length ? drawable : numeric;
  const [picked, setPicked] = useState<string | null>(null);
  // What is computed usually stands after what it is about.
  const chosen = picked && choices.includes(picked) ? picked : (choices[choices.length - 1] ?? "");
  const { times, series, more } = useMemo(() => {
    const others = variables.filter((each) => each !== chosen && !isPlaceName(each));
    const about = others.filter((each) => !numeric.includes(each) || isKind(each, answers));
    return linesOf(answers, chosen, about);
  }, [answers, chosen]);
  return (
    <>
      {choices.length > 1 && (
        <label class="inline">
          Value{" "}
          <select value={chosen} onChange={(event) => setPicked(event.currentTarget.value)}>
            {choices.map((each) => (
              <option key={each} value={each}>
                ?{each}
              </option>
            ))}
          </select>
        </label>
      )}
      <Chart
        title={`?${chosen} over event time, UTC`}
        times={times}
        series={series}
        height={300}
        utc
        points
        format={(value) => (value == null ? "–" : String(Number(value.toPrecision(5))))}
      />
      {more > 0 && <p class="hint">The {MOST_LINES} that changed last are drawn; there are {more} more.</p>}
    </>
  );
}

/** Whether numbers are names of a few things, as those of floors are. */
function isKind(variable: string, answers: Answer[]): boolean {
  const found = new Set<number>();
  for (const each of answers) {
    const value = numberOf(each.bindings?.[variable]);
    if (value === null || !Number.isInteger(value)) return false;
    found.add(value);
    if (found.size > MOST_LINES) return false;
  }
  return found.size > 0;
}

function linesOf(answers: Answer[], variable: string, about: string[]) {
  const lines = new Map<string, { name: string; values: Map<number, number>; last: number }>();
  const instants = new Set<number>();
  for (const each of answers) {
    const value = numberOf(each.bindings?.[variable]);
    if (value === null || each.sign === "-") continue;
    const { key, name } = subjectOf(each, about);
    const line = lines.get(key) ?? { name, values: new Map<number, number>(), last: 0 };
    line.values.set(each.t, value);
    line.last = each.t;
    lines.set(key, line);
    instants.add(each.t);
  }
  const times = [...instants].sort((a, b) => a - b).slice(-MOST_INSTANTS);
  const drawn = [...lines.values()]
    .sort((a, b) => b.last - a.last || b.values.size - a.values.size)
    .slice(0, MOST_LINES)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const names = new Map<string, number>();
  const series: Series[] = drawn.map((each) => {
    // Two things may have the same short name.
    const known = names.get(each.name) ?? 0;
    names.set(each.name, known + 1);
    return {
      name: known ? `${each.name} (${known + 1})` : each.name,
      values: times.map((t) => each.values.get(t) ?? null) as Column,
    };
  });
  return { times, series, more: lines.size - drawn.length };
}
