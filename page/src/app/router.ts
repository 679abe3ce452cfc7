/** Where the user is, as the part of the address after #: paths of the service are its API. */
import { Store } from "./store";

export const VIEWS = ["overview", "queries", "mappings", "windows", "letters"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  view: View;
  name: string | null;
}

function read(): Route {
  const [, view, name] = location.hash.split("/");
  const known = VIEWS.find((each) => each === view) ?? "overview";
  try {
    return { view: known, name: name ? decodeURIComponent(name) : null };
  } catch {
    return { view: known, name: null };
  }
}

export const route = new Store<Route>(read());
addEventListener("hashchange", () => route.set(read()));

export function hrefOf(view: View, name?: string | null): string {
  return name ? `#/${view}/${encodeURIComponent(name)}` : `#/${view}`;
}

export function go(view: View, name?: string | null): void {
  location.hash = hrefOf(view, name);
}
