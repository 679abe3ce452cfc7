/** The statements of a stream as they come, once somebody asks for them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { segment } from "../api/client";
import { subscribe } from "../api/events";
import type { Answer, Problem } from "../api/types";
import { parseLine } from "../rdf/terms";
import { Button, Empty, ProblemBox } from "../ui/basics";
import * as format from "../ui/format";
import { TermText } from "../ui/TermText";

const MOST = 40;
const SHOW_MS = 400;

export function StreamLook({ iri }: { iri: string }): JSX.Element {
  const [looking, setLooking] = useState(false);
  const [lines, setLines] = useState<{ t: number; line: string }[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);

  useEffect(() => {
    if (!looking) return;
    let fresh: { t: number; line: string }[] = [];
    const end = subscribe(`/streams/${segment(iri)}/events`, {
      onEvents: (events) => {
        for (const each of events) {
          if (each.event !== "answer") continue;
          const answer = JSON.parse(each.data) as Answer;
          for (const line of answer.graph ?? []) fresh.push({ t: answer.t, line });
          fresh = fresh.slice(-MOST);
        }
      },
      onState: (_state, found) => setProblem(found),
    });
    const timer = setInterval(() => {
      if (!fresh.length) return;
      const next = fresh.reverse();
      fresh = [];
      setLines((known) => [...next, ...known].slice(0, MOST));
    }, SHOW_MS);
    return () => {
      end();
      clearInterval(timer);
    };
  }, [looking, iri]);

  return (
    <>
      <p>
        <Button icon={looking ? "pause" : "play"} onClick={() => setLooking(!looking)}>
          {looking ? "Look no more" : "Look into the stream"}
        </Button>
      </p>
      <ProblemBox problem={problem} />
      {looking && !lines.length && !problem && <Empty>Nothing has come yet.</Empty>}
      {lines.length > 0 && (
        <ol class="statements" aria-label={`The last statements of ${iri}`}>
          {lines.map((each, place) => (
            <li key={lines.length - place}>
              <time>{format.clock(each.t)}</time>
              {parseLine(each.line).map((term, at) => (
                <TermText key={at} term={term} />
              ))}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
