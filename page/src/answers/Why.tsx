/** What an answer rests on, as a picture: elements of streams, static triples, steps of entailment. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { segment, send } from "../api/client";
import type { Answer, Derivation, Reason, WhyResult } from "../api/types";
import { useAsked } from "../app/hooks";
import { parseLine, shortIri, shortTerm } from "../rdf/terms";
import { Button, Empty, Panel, ProblemBox } from "../ui/basics";
import { type Arrow, type Box, Diagram, fitted } from "../ui/Diagram";
import * as format from "../ui/format";

const MOST_TRIPLES = 24;
const MOST_SOURCES = 4;

/** How often to ask again while the service has not seen whole windows. */
const AGAIN_MS = 2500;

interface Props {
  query: string;
  answer: Answer;
  /** Returns a newer answer that is like this one. */
  newer: (answer: Answer) => Answer | undefined;
  onClose: () => void;
}

export function Why(props: Props): JSX.Element {
  const { query } = props;
  const place = useRef<HTMLDivElement>(null);
  const [answer, setAnswer] = useState(props.answer);
  const latest = useRef(props.newer);
  latest.current = props.newer;
  useEffect(() => setAnswer(props.answer), [props.answer]);
  const found = useAsked(
    (signal) =>
      send<WhyResult>(
        "POST",
        `/queries/${segment(query)}/why`,
        { t: answer.t, sign: answer.sign, bindings: answer.bindings },
        signal,
      ),
    [query, answer.id],
  );
  useEffect(() => {
    place.current?.focus();
    place.current?.scrollIntoView({ block: "nearest" });
  }, [props.answer.id]);
  const result = found.value;
  useEffect(() => {
    if (!result || result.complete || found.busy) return;
    const timer = setInterval(() => setAnswer((now) => latest.current(now) ?? now), AGAIN_MS);
    return () => clearInterval(timer);
  }, [result, found.busy]);
  return (
    <div
      ref={place}
      tabIndex={-1}
      class="why"
      onKeyDown={(event) => {
        if (event.key === "Escape") props.onClose();
      }}
    >
      <Panel
        title="Why this answer?"
        label="Why this answer?"
        actions={<Button icon="close" label="Close the reasons" kind="quiet" onClick={props.onClose} />}
      >
        <ProblemBox problem={found.problem} />
        {found.busy && !result && <Empty>Looking for what it rests on…</Empty>}
        {result && !found.problem && (
          <>
            {!result.complete && (
              <p class="notice">
                The service looks into the streams since you asked; what came before is not known. This goes on with
                newer answers until one is known as a whole.
              </p>
            )}
            {result.triples.length ? (
              <Picture answer={answer} reasons={result.triples} />
            ) : (
              <Empty>{result.complete ? "Nothing that is known made this answer." : "Waiting for a newer answer…"}</Empty>
            )}
          </>
        )}
      </Panel>
    </div>
  );
}

function Picture({ answer, reasons }: { answer: Answer; reasons: Reason[] }): JSX.Element {
  const boxes: Box[] = [];
  const arrows: Arrow[] = [];
  const known = new Map<string, string>();
  const add = (kind: string, id: string, width: number, lines: string[], whole: string): string => {
    if (known.has(id)) return id;
    known.set(id, id);
    boxes.push({
      id,
      kind,
      width,
      height: 14 + lines.length * 18,
      label: whole,
      body: (
        <>
          <title>{whole}</title>
          <rect class="edge" width="4" height={lines.length * 18} x="6" y="7" rx="2" />
          {lines.map((line, place) => (
            <text key={place} x="18" y={21 + place * 17} class={place ? "box-second" : "box-title"}>
              {fitted(line, width - 26, place ? 11 : 13)}
            </text>
          ))}
        </>
      ),
    });
    return id;
  };
  const bound = Object.entries(answer.bindings ?? {}).map(([name, term]) => `?${name} = ${shortTerm(term)}`);
  const goal = add("query", "answer", 230, ["the answer", `of ${format.instant(answer.t)}`, ...bound], bound.join("\n"));

  for (const reason of reasons.slice(0, MOST_TRIPLES)) {
    const words = parseLine(reason.triple).map(shortTerm);
    const triple = add("mapping", `triple ${reason.triple}`, 250, [words.slice(1).join(" "), words[0] ?? ""], reason.triple);
    arrows.push({ from: triple, to: goal });
    const elements = reason.elements ?? [];
    for (const each of elements.slice(0, MOST_SOURCES)) {
      const place = `${each.stream} ${each.time} ${each.position}`;
      const source = add(
        "stream",
        `element ${place}`,
        200,
        [shortIri(each.stream), `at ${format.instant(each.time)}`],
        place,
      );
      derive(add, arrows, source, triple, each);
    }
    const others = elements.length - MOST_SOURCES + (reason.more_elements ?? 0);
    if (others > 0) {
      arrows.push({ from: add("stream", `more ${triple}`, 200, [`and ${others} more elements`], ""), to: triple });
    }
    for (const each of (reason.static ?? []).slice(0, MOST_SOURCES)) {
      const source = add("template", `static ${each.graph ?? ""}`, 200, ["static data", each.graph ?? "default graph"], "");
      derive(add, arrows, source, triple, each);
    }
  }
  const more = reasons.length - MOST_TRIPLES;
  return (
    <>
      <Diagram label="What the answer rests on" boxes={boxes} arrows={arrows} maxHeight={520} />
      {more > 0 && <p class="hint">and {format.plural(more, "more triple")}</p>}
    </>
  );
}

type Add = (kind: string, id: string, width: number, lines: string[], whole: string) => string;

/** An arrow from a source to a triple, through the steps of entailment that lead there. */
function derive(add: Add, arrows: Arrow[], source: string, triple: string, how: Derivation): void {
  let from = source;
  for (const step of how.steps ?? []) {
    const axiom = step.axiom ? parseLine(step.axiom).map(shortTerm).join(" ") : "";
    const whole = [step.rule, how.carries, step.axiom].filter(Boolean).join("\n");
    const to = add("query", `step ${from} ${step.rule} ${step.axiom ?? ""}`, 210, [`by ${step.rule}`, axiom], whole);
    arrows.push({ from, to });
    from = to;
  }
  if (!arrows.some((each) => each.from === from && each.to === triple)) arrows.push({ from, to: triple });
}
