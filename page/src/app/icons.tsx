/** Line icons, 20 by 20; they are decoration, so texts next to them name things. */
import type { JSX } from "preact";

const PATHS = {
  overview: "M3 5h5v4H3zM12 3h5v4h-5zM12 13h5v4h-5zM8 7h2a2 2 0 0 0 2-2M8 7h1c2 0 1 8 3 8",
  queries: "M4 4h12v3H4zM4 10h7M4 13h5M13.5 12.5m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M15.4 14.4 17.5 16.5",
  mappings: "M3 5h5M3 10h5M3 15h5M12 5h5M12 10h5M12 15h5M8 5c3 0 1 5 4 5M8 10c3 0 1 5 4 5M8 15c3 0 1-10 4-10",
  windows: "M3 4h14v12H3zM3 8h14M8 8v8M13 8v8",
  letters: "M3 5h14v10H3zM3 6l7 5 7-5M14 3l3-1",
  sun: "M10 6a4 4 0 1 0 0 8a4 4 0 1 0 0-8M10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M4 16l1.4-1.4M14.6 5.4 16 4",
  moon: "M16 11.5A6.5 6.5 0 0 1 8.5 4a6.5 6.5 0 1 0 7.5 7.5z",
  auto: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14",
  play: "M6 4l10 6-10 6z",
  pause: "M6 4h3v12H6zM11 4h3v12h-3z",
  plus: "M10 4v12M4 10h12",
  close: "M5 5l10 10M15 5 5 15",
  download: "M10 3v10M6 9l4 4 4-4M4 17h12",
  trash: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11",
  why: "M7.5 7.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M10 14.5v.5",
  out: "M8 4H4v12h4M8 10h9M14 7l3 3-3 3",
  zoomIn: "M9 4a5 5 0 1 0 0 10A5 5 0 1 0 9 4M13 13l4 4M9 7v4M7 9h4",
  zoomOut: "M9 4a5 5 0 1 0 0 10A5 5 0 1 0 9 4M13 13l4 4M7 9h4",
  fit: "M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
