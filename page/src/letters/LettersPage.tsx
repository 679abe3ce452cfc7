/** Records and statements that could not be used, with reasons, and a dry run with a mapping. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { getJson, segment, send } from "../api/client";
import type { Letter, MappingInfo, PreviewResult } from "../api/types";
import { useAction, useAsked } from "../app/hooks";
import { go } from "../app/router";
import { Store, useStore } from "../app/store";
import { handedOver } from "../mappings/handoff";
import { Triples } from "../mappings/Triples";
import { Badge, Button, Empty, Panel, ProblemBox } from "../ui/basics";
import * as format from "../ui/format";
import { type Letters, watchLetters } from "./store";

const MOST_SHOWN = 100;

export function LettersPage(): JSX.Element {
  const store = useMemo(() => new Store<Letters>({ list: [], total: 0, known: false }), []);
  useEffect(() => watchLetters(store), []);
  const letters = useStore(store);
  const [kind, setKind] = useState<string | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const kinds = useMemo(() => kindsOf(letters.list), [letters.list]);
  const shown = kind === null ? letters.list : letters.list.filter((each) => kindOf(each) === kind);
  const letter = letters.list.find((each) => each.seq === chosen);
  if (letters.known && !letters.list.length) {
    return (
      <Panel title="No dead letters">
        <Empty>Every record and every statement could be used.</Empty>
      </Panel>
    );
  }
  return (
    <div class={`split ${letter ? "with-letter" : ""}`}>
      <Panel title={<>{format.plural(letters.total, "dead letter")}</>} label="Dead letters">
        <div class="row" role="group" aria-label="Reasons">
          {kinds.length > 1 && (
            <Button pressed={kind === null} onClick={() => setKind(null)}>
              All
            </Button>
          )}
          {kinds.map(([each, count]) => (
            <Button key={each} pressed={kind === each} onClick={() => setKind(kind === each ? null : each)}>
              {each} <Badge>{count}</Badge>
            </Button>
          ))}
        </div>
        <div class="table-scroll letters">
          <table>
            <thead>
              <tr>
                <th scope="col">Came</th>
                <th scope="col">Reason</th>
                <th scope="col">Record</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, MOST_SHOWN).map((each) => (
                <tr key={each.seq} class={each.seq === chosen ? "chosen" : ""}>
                  <td class="time">{new Date(each.at).toLocaleTimeString("en-GB")}</td>
                  <td>
                    <button type="button" class="link" onClick={() => setChosen(each.seq === chosen ? null : each.seq)}>
                      {each.reason ?? "no reason"}
                    </button>
                  </td>
                  <td>
                    <code class="clip">{(each.record ?? "").slice(0, 200)}</code>
                  </td>
                  <td class="break">{each.source ?? each.network}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {shown.length > MOST_SHOWN && <p class="hint">The newest {MOST_SHOWN} are shown.</p>}
      </Panel>
      {letter && <LetterDetails key={letter.seq} letter={letter} onClose={() => setChosen(null)} />}
    </div>
  );
}

/** Reasons often end with what was found; what stands before that is their kind. */
function kindOf(letter: Letter): string {
  const reason = letter.reason ?? "no reason";
  return reason.split(/[:"'(]/)[0]?.trim().slice(0, 60) || reason.slice(0, 60);
}

function kindsOf(letters: Letter[]): [string, number][] {
  const found = new Map<string, number>();
  for (const each of letters) found.set(kindOf(each), (found.get(kindOf(each)) ?? 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1]).slice(0, 8);
}

function LetterDetails({ letter, onClose }: { letter: Letter; onClose: () => void }): JSX.Element {
  const list = useAsked((signal) => getJson<{ mappings: MappingInfo[] }>("/mappings", signal), []);
  const mappings = list.value?.mappings ?? [];
  const [picked, setPicked] = useState<string | null>(null);
  const [result, setResult] = useState<PreviewResult | null>(null);
  const action = useAction();
  const likely = mappings.find((each) => letter.source && each.sources.includes(letter.source));
  const mapping = picked ?? likely?.name ?? mappings[0]?.name ?? null;
  const record = letter.record ?? "";
  const chosen = mappings.find((each) => each.name === mapping);
  const source = letter.source && chosen?.sources.includes(letter.source) ? letter.source : null;
  const retry = () =>
    void action.run(async () => {
      if (!mapping) return;
      setResult(await send<PreviewResult>("POST", `/mappings/${segment(mapping)}/preview`, { records: [record], ...(source ? { source } : {}) }));
    });
  return (
    <Panel
      title="A dead letter"
      label="The dead letter"
      actions={<Button icon="close" label="Close the letter" kind="quiet" onClick={onClose} />}
    >
      <p class="problem">{letter.reason}</p>
      <p class="hint break">
        {letter.source} {letter.place} · network {letter.network}
      </p>
      <pre class="text" tabIndex={0}>
        {record || "(nothing was kept of it)"}
      </pre>
      {record && mappings.length > 0 && (
        <>
          <div class="row retry">
            <label class="inline">
              Retry with{" "}
              <select value={mapping ?? ""} onChange={(event) => setPicked(event.currentTarget.value)}>
                {mappings.map((each) => (
                  <option key={each.name} value={each.name}>
                    {each.name}
                  </option>
                ))}
              </select>
            </label>
            <Button icon="play" onClick={retry} disabled={action.busy}>
              Dry run
            </Button>
            <Button
              onClick={() => {
                handedOver.set({ mapping, source, record });
                go("mappings", mapping);
              }}
            >
              Open in the mapping editor
            </Button>
          </div>
          <ProblemBox problem={action.problem ?? result?.problem ?? result?.records[0]?.error ?? null} />
          {result && result.triples.length > 0 && (
            <>
              <p class="hint">It would become {format.plural(result.triples.length, "triple")}. Nothing was sent.</p>
              <Triples lines={result.triples} label="Triples of the dry run" />
            </>
          )}
          {result && !result.problem && !result.triples.length && !result.records[0]?.error && <Empty>No triples.</Empty>}
        </>
      )}
    </Panel>
  );
}
