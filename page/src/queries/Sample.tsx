/** The query over what its streams brought lately, checked against an evaluation from scratch. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AnswerTable } from "../answers/AnswerTable";
import { segment, send } from "../api/client";
import type { Answer, CheckResult, Problem } from "../api/types";
import { asProblem } from "../api/client";
import { isAdmin, session } from "../app/session";
import { useStore } from "../app/store";
import { Badge, Button, Empty, ProblemBox } from "../ui/basics";
import * as format from "../ui/format";

interface Trial {
  elements: number;
  from: number | null;
  to: number | null;
  answers: Answer[];
  count: number;
  reports: number;
  difference: string | null;
}

interface Verified {
  from: number | null;
  to: number | null;
  reports: number;
  difference: string | null;
}

const AGAIN_MS = 2000;
const MOST_TRIES = 30;

export function Sample(props: {
  check: CheckResult | null;
  text: string;
  options: Record<string, unknown>;
  /** The query that runs with this text, if there is one. */
  name: string | null;
}): JSX.Element {
  const { check, text, name } = props;
  const who = useStore(session);
  const [tries, setTries] = useState(0);
  const [trial, setTrial] = useState<Trial | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    setTries(0);
    setTrial(null);
    setProblem(null);
  }, [text]);
  useEffect(() => {
    if (!tries) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    setProblem(null);
    send<Trial>("POST", "/try", { text, ...props.options }, abort.signal).then(
      (found) => {
        setTrial(found);
        // The service began to look just now; something will come.
        if (found && !found.elements && tries < MOST_TRIES) timer = setTimeout(() => setTries(tries + 1), AGAIN_MS);
        else setTries(0);
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setProblem(asProblem(error));
        setTries(0);
      },
    );
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [tries]);
  if (!isAdmin(who)) return <Empty>Trying a query needs a token of the role admin.</Empty>;
  return (
    <>
      <div class="row">
        <Button icon="play" kind="main" disabled={!check?.ok || tries > 0} onClick={() => setTries(1)}>
          Run on a sample
        </Button>
        <span class="hint">
          Over the last elements of {check?.streams.length === 1 ? "its stream" : "its streams"}; nothing is registered.
        </span>
        {name && <VerifyButton name={name} />}
      </div>
      <ProblemBox problem={problem} />
      {tries > 0 && (!trial || !trial.elements) && <Empty>Looking into the streams until something comes…</Empty>}
      {trial && trial.elements > 0 && (
        <>
          <p class="verdict">
            {format.plural(trial.count, "answer")} from {format.plural(trial.elements, "element")} of{" "}
            {format.instant(trial.from)} to {format.instant(trial.to)} UTC{" "}
            <Verdict reports={trial.reports} difference={trial.difference} />
          </p>
          {trial.difference && <pre class="text">{trial.difference}</pre>}
          {trial.answers.length > 0 && (
            <AnswerTable
              answers={trial.answers.map((each, place) => ({ ...each, id: String(place) }))}
              variables={check?.variables ?? []}
            />
          )}
        </>
      )}
    </>
  );
}

function Verdict({ reports, difference }: { reports: number; difference: string | null }): JSX.Element {
  if (!reports) return <Badge>not verified</Badge>;
  return difference ? (
    <Badge tone="bad">differs from an evaluation from scratch</Badge>
  ) : (
    <Badge tone="good">verified: {format.plural(reports, "report")} evaluated from scratch agree</Badge>
  );
}

function VerifyButton({ name }: { name: string }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [found, setFound] = useState<Verified | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = () => {
    setBusy(true);
    setProblem(null);
    send<Verified>("POST", `/queries/${segment(name)}/verify`)
      .then(setFound, (error: unknown) => setProblem(asProblem(error)))
      .finally(() => setBusy(false));
  };
  return (
    <>
      <Button onClick={run} disabled={busy}>
        Verify the running query
      </Button>
      {found && (
        <span role="status">
          {found.reports ? (
            <Verdict reports={found.reports} difference={found.difference} />
          ) : (
            <Badge>nothing to compare yet; ask again soon</Badge>
          )}
        </span>
      )}
      {found?.difference && <pre class="text">{found.difference}</pre>}
      <ProblemBox problem={problem} />
    </>
  );
}
