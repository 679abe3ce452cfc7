/** The query in another dialect. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send } from "../api/client";
import { useAsked } from "../app/hooks";
import { Button, Empty, ProblemBox } from "../ui/basics";
import { Editor } from "../ui/Editor";

const DIALECTS: [string, string][] = [
  ["rspql", "RSP-QL"],
  ["csparql", "C-SPARQL"],
  ["cqels", "CQELS-QL"],
  ["sparqlstream", "SPARQLStream"],
];

interface Translated {
  text: string;
  warnings: { aspect: string; message: string }[];
}

export function Translation(props: {
  text: string;
  options: Record<string, unknown>;
  ok: boolean;
  onUse: (text: string) => void;
}): JSX.Element {
  const [to, setTo] = useState("cqels");
  const found = useAsked(
    props.ok
      ? (signal) => send<Translated>("POST", "/translate", { text: props.text, ...props.options, to }, signal)
      : null,
    [props.text, props.ok, to],
  );
  if (!props.ok) return <Empty>A query is translated once it can be read.</Empty>;
  return (
    <>
      <div class="row">
        <label class="inline">
          Write it in{" "}
          <select value={to} onChange={(event) => setTo(event.currentTarget.value)}>
            {DIALECTS.map(([id, title]) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {found.value && !found.problem && (
          <Button onClick={() => found.value && props.onUse(found.value.text)}>Go on with this</Button>
        )}
      </div>
      <ProblemBox problem={found.problem} />
      {found.value && !found.problem && (
        <>
          {found.value.warnings.length > 0 && (
            <ul class="warnings">
              {found.value.warnings.map((each) => (
                <li key={each.message}>{each.message}</li>
              ))}
            </ul>
          )}
          <Editor label="The translated query" language="query" text={found.value.text} onChange={() => undefined} readOnly minHeight="80px" />
        </>
      )}
    </>
  );
}
