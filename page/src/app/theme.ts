/** Light or dark: as the system says, or as the user chose. */
import { Store } from "./store";

export type Theme = "auto" | "light" | "dark";
const KEY = "quadweir-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function saved(): Theme {
  const found = localStorage.getItem(KEY);
  return found === "light" || found === "dark" ? found : "auto";
}

export const theme = new Store<Theme>(saved());
/** Whether colours are dark now. */
export const isDark = new Store<boolean>(false);

function apply(): void {
  const chosen = theme.value;
  const dark = chosen === "dark" || (chosen === "auto" && system.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  isDark.set(dark);
}

export function setTheme(next: Theme): void {
  if (next === "auto") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  theme.set(next);
  apply();
}

system.addEventListener("change", apply);
apply();

/** A colour of the style sheet, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
