/** The last ten minutes of a network. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Column } from "../api/types";
import { BINARY, Chart, WHOLE } from "../ui/Chart";
import * as format from "../ui/format";

const DAY_MS = 86_400_000;

interface Props {
  times: number[];
  columns: Record<string, Column>;
}

export function NetworkCharts({ times, columns }: Props): JSX.Element {
  const of = (key: string): Column => columns[key] ?? times.map(() => null);
  const parts = useMemo(() => {
    const part = (key: string) => of(key);
    const kernel = part("kernel_ms");
    const state = part("state_ms");
    const rest = part("batch_ms").map((value, place) =>
      value == null ? null : Math.max(0, value - (kernel[place] ?? 0) - (state[place] ?? 0)),
    );
    return { kernel, state, rest };
  }, [times, columns]);
  const pace = useMemo(() => paceOf(times, of("through")), [times, columns]);
  const lags = of("lag_ms").filter((each): each is number => each != null);
  // Of a recording, the distance to now says nothing; its pace does.
  const isReplay = lags.length > 0 && Math.min(...lags) > DAY_MS;
  return (
    <div class="charts">
      <Chart
        title="Rates"
        times={times}
        series={[
          { name: "statements in", values: of("input_rate"), colour: "series-1" },
          { name: "answers out", values: of("answer_rate"), colour: "series-2" },
        ]}
        format={format.rate}
      />
      <Chart
        title="Time of a batch"
        times={times}
        stacked
        series={[
          { name: "kernel", values: parts.kernel, colour: "series-2" },
          { name: "state", values: parts.state, colour: "series-3" },
          { name: "Spark", values: parts.rest, colour: "series-1" },
        ]}
        format={format.millis}
      />
      {isReplay ? (
        <Chart
          title="Pace of event time"
          times={times}
          series={[{ name: "watermark moves", values: pace, colour: "series-4" }]}
          format={(value) => (value == null ? "–" : `${Math.round(value * 10) / 10}×`)}
        />
      ) : (
        <Chart
          title="Lag of the watermark"
          times={times}
          series={[{ name: "behind now", values: of("lag_ms"), colour: "series-4" }]}
          format={format.duration}
        />
      )}
      <Chart
        title="State"
        times={times}
        series={[{ name: "on disk", values: of("state_bytes"), colour: "series-3" }]}
        steps={BINARY}
        format={format.bytes}
      />
      <Chart
        title="Held in windows"
        times={times}
        series={[{ name: "mappings", values: of("held"), colour: "series-5" }]}
        steps={WHOLE}
        format={format.count}
      />
      <Chart
        title="Late and dead letters"
        times={times}
        series={[
          { name: "late", values: of("late"), colour: "series-6" },
          { name: "dead letters", values: of("dead_letters"), colour: "series-7" },
        ]}
        steps={WHOLE}
        format={format.count}
      />
    </div>
  );
}

/** How fast event time passes, compared with the clock; over about ten seconds. */
function paceOf(times: number[], through: Column): Column {
  const span = 5;
  return times.map((now, place) => {
    const before = Math.max(0, place - span);
    const [began, ended] = [through[before], through[place]];
    const passed = now - (times[before] ?? now);
    if (began == null || ended == null || passed <= 0) return null;
    return Math.max(0, (ended - began) / passed);
  });
}
