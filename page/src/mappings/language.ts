import type { Language } from "../ui/languages";

/** As the service guesses it. */
export function languageOfMapping(text: string): Language {
  const starts = ["mappings:", "prefixes:", "sources:", "mapping:", "m:", "base:", "authors:"];
  return text.split("\n").some((line) => starts.some((each) => line.trim().startsWith(each))) ? "yaml" : "turtle";
}
