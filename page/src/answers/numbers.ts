/** Which parts of answers are numbers, and which say of what. */
import type { Answer } from "../api/types";
import { fullTerm, numberOf, shortTerm } from "../rdf/terms";

/** The variables whose values are numbers in all answers that bind them. */
export function numericVariables(variables: string[], answers: Answer[]): string[] {
  return variables.filter((name) => {
    let seen = false;
    for (const each of answers) {
      const term = each.bindings?.[name];
      if (!term) continue;
      if (numberOf(term) === null) return false;
      seen = true;
    }
    return seen;
  });
}

/** The values of an answer that are no numbers: what its numbers are about. */
export function subjectOf(answer: Answer, about: string[]): { key: string; name: string } {
  const terms = about.flatMap((name) => answer.bindings?.[name] ?? []);
  return {
    key: terms.map(fullTerm).join(" "),
    name: terms.map(shortTerm).join(" ") || "all",
  };
}
