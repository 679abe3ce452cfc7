/** The newest answers first. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Answer } from "../api/types";
import { parseLine } from "../rdf/terms";
import { Button } from "../ui/basics";
import * as format from "../ui/format";
import { TermText } from "../ui/TermText";

const MOST_ROWS = 200;

export function AnswerTable(props: {
  answers: Answer[];
  variables: string[];
  onWhy?: (answer: Answer) => void;
}): JSX.Element {
  const { answers, variables, onWhy } = props;
  const [lastOnly, setLastOnly] = useState(false);
  const rows = useMemo(() => {
    const newest = answers.slice(-MOST_ROWS).reverse();
    const last = newest.reduce((most, each) => Math.max(most, each.t), -Infinity);
    return lastOnly ? newest.filter((each) => each.t === last) : newest;
  }, [answers, lastOnly]);
  const isTriples = rows.some((each) => each.graph);
  return (
    <>
      <label class="inline">
        <input type="checkbox" checked={lastOnly} onChange={(event) => setLastOnly(event.currentTarget.checked)} />
        Only the last report
      </label>
      <div class="table-scroll answers" tabIndex={0} role="region" aria-label="Answers">
        <table>
          <thead>
            <tr>
              <th scope="col">Instant, UTC</th>
              <th scope="col">
                <span class="hidden-label">Sign</span>
              </th>
              {isTriples ? (
                <th scope="col">Triples</th>
              ) : (
                variables.map((each) => (
                  <th scope="col" key={each}>
                    ?{each}
                  </th>
                ))
              )}
              {onWhy && <th scope="col" />}
            </tr>
          </thead>
          <tbody>
            {rows.map((each) => (
              <tr key={each.id} class={each.sign === "-" ? "gone" : ""}>
                <td class="time">{format.instant(each.t)}</td>
                <td class={`sign ${each.sign === "-" ? "minus" : "plus"}`}>
                  {each.sign === "-" ? "−" : "+"}
                </td>
                {isTriples ? (
                  <td>
                    {(each.graph ?? []).map((line, place) => (
                      <div class="triple" key={place}>
                        {parseLine(line).map((term, at) => (
                          <TermText key={at} term={term} />
                        ))}
                      </div>
                    ))}
                  </td>
                ) : (
                  variables.map((name) => (
                    <td key={name}>
                      <TermText term={each.bindings?.[name]} />
                    </td>
                  ))
                )}
                {onWhy && (
                  <td class="act">
                    <Button kind="quiet" label="Why this answer?" onClick={() => onWhy(each)}>
                      why
                    </Button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
