/** Numbers and times as people read them. */

const DASH = "–";

export function count(value: number | null | undefined): string {
  return value == null ? DASH : Math.round(value).toLocaleString("en");
}

export function rate(value: number | null | undefined): string {
  if (value == null) return DASH;
  if (value === 0) return "0/s";
  if (value < 10) return `${value.toFixed(1)}/s`;
  if (value < 10_000) return `${Math.round(value).toLocaleString("en")}/s`;
  return value < 1e6 ? `${(value / 1e3).toFixed(1)}k/s` : `${(value / 1e6).toFixed(1)}M/s`;
}

export function millis(value: number | null | undefined): string {
  if (value == null) return DASH;
  if (value < 1000) return `${value < 10 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ms`;
  return duration(value);
}

const UNITS: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

export function duration(ms: number | null | undefined): string {
  if (ms == null) return DASH;
  for (const [unit, size] of UNITS) {
    if (Math.abs(ms) >= size) {
      const value = ms / size;
      return `${value < 10 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${unit}`;
    }
  }
  return `${Math.round(ms)} ms`;
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 && unit ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** An instant in UTC, as the event times of streams are. */
export function instant(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return DASH;
  return new Date(ms).toISOString().replace("T", " ").replace(/\.000Z$/, "").replace(/Z$/, "");
}

/** Only the time of the day of an instant, in UTC. */
export function clock(ms: number): string {
  const text = instant(ms);
  return text.length > 10 ? text.slice(11) : text;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
