/** What a query means, in words. */
import type { JSX } from "preact";
import type { CheckResult } from "../api/types";
import { shortIri } from "../rdf/terms";
import { Badge, Empty, Figure } from "../ui/basics";

export function Meaning({ check }: { check: CheckResult | null }): JSX.Element {
  const found = check?.explanation;
  if (!found) return <Empty>What the query means is shown once it can be read.</Empty>;
  return (
    <>
      <dl class="figures">
        <Figure name="Dialect" value={found.dialect} />
        <Figure name="Answers" value={check?.form ?? "–"} />
        <Figure name="Output" value={found.output} />
        <Figure name="Runs in" value={check?.network ?? "a new network"} />
      </dl>
      <p class="report">
        Reports <strong>{found.report}</strong>.
      </p>
      <div class="table-scroll">
        <table>
          <caption class="hidden-label">Windows</caption>
          <thead>
            <tr>
              <th scope="col">Window</th>
              <th scope="col">Stream</th>
              <th scope="col">Holds</th>
              <th scope="col">As a</th>
              <th scope="col">Remembers</th>
            </tr>
          </thead>
          <tbody>
            {found.windows.map((each) => (
              <tr key={`${each.name}${each.stream}`}>
                <td title={each.name ?? ""}>{each.name ? shortIri(each.name) : "–"}</td>
                <td title={each.stream}>{shortIri(each.stream.replace(/^<|>$/g, ""))}</td>
                <td>{each.scope}</td>
                <td>{each.content}</td>
                <td>
                  {each.bounded ? "" : <Badge tone="warn">without bound</Badge>} {each.state}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <details>
        <summary>Algebra</summary>
        <pre class="text" tabIndex={0}>
          {found.algebra}
        </pre>
      </details>
    </>
  );
}
