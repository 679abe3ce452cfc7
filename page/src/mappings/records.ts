/** Sample records as somebody types them: JSON, JSON lines, CSV with a header, or XML. */
import type { Language } from "../ui/languages";

const MOST = 50;

export function languageOfRecords(text: string): Language {
  const first = text.trimStart()[0];
  if (first === "<") return "xml";
  return first === "{" || first === "[" ? "json" : "text";
}

/** The records of a text, each as a stream would bring it. */
export function recordsOf(text: string): string[] {
  const trimmed = text.trim();
  if (!trimmed) return [];
  switch (languageOfRecords(trimmed)) {
    case "xml":
      return [trimmed];
    case "json":
      return jsonRecords(trimmed).slice(0, MOST);
    default: {
      const [header, ...lines] = trimmed.split(/\r?\n/);
      return lines.filter((each) => each.trim()).map((each) => `${header}\n${each}`).slice(0, MOST);
    }
  }
}

function jsonRecords(text: string): string[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.map((each) => JSON.stringify(each)) : [JSON.stringify(found)];
  } catch {
    // JSON lines, or a mistake that the service explains.
    return text.split(/\r?\n/).filter((each) => each.trim());
  }
}
