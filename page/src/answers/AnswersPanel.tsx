/** The answers of a query as they come: as a table, a chart, a map or a graph. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Answer, QueryInfo } from "../api/types";
import { useStore } from "../app/store";
import { Button, Empty, ProblemBox, type Tab, Tabs } from "../ui/basics";
import * as format from "../ui/format";
import { AnswerChart } from "./AnswerChart";
import { AnswerGraph } from "./AnswerGraph";
import { AnswerMap } from "./AnswerMap";
import { AnswerTable } from "./AnswerTable";
import { AnswerBuffer } from "./buffer";
import { numericVariables, subjectOf } from "./numbers";
import { placesOf } from "./places";
import { Why } from "./Why";

type Look = "table" | "chart" | "map" | "graph";

export function AnswersPanel({ info }: { info: QueryInfo }): JSX.Element {
  const [buffer, setBuffer] = useState<AnswerBuffer | null>(null);
  useEffect(() => {
    const made = new AnswerBuffer(info.name);
    setBuffer(made);
    return () => made.close();
  }, [info.name, info.network, info.text]);
  return buffer ? <Shown key={info.text} info={info} buffer={buffer} /> : <Empty>Connecting…</Empty>;
}

function Shown({ info, buffer }: { info: QueryInfo; buffer: AnswerBuffer }): JSX.Element {
  const answers = useStore(buffer.store);
  const [picked, setPicked] = useState<Look | null>(null);
  const [asked, setAsked] = useState<Answer | null>(null);
  const variables = info.variables ?? [];
  const isConstruct = info.form === "CONSTRUCT";
  const lately = answers.list.slice(-200);
  const numeric = useMemo(() => numericVariables(variables, lately), [answers.list]);
  const hasPlaces = useMemo(() => placesOf(variables, lately).length > 0, [answers.list]);
  const tabs: Tab<Look>[] = [
    { id: "table", label: "Table" },
    ...(numeric.length ? [{ id: "chart" as Look, label: "Chart" }] : []),
    ...(hasPlaces ? [{ id: "map" as Look, label: "Map" }] : []),
    ...(isConstruct ? [{ id: "graph" as Look, label: "Graph" }] : []),
  ];
  const look = picked && tabs.some((each) => each.id === picked) ? picked : "table";
  return (
    <>
      <div class="row">
        <Tabs label="How to show the answers" tabs={tabs} chosen={look} onChoose={setPicked} />
        <Button
          icon={answers.paused ? "play" : "pause"}
          pressed={answers.paused}
          onClick={() => buffer.pause(!answers.paused)}
        >
          {answers.paused ? "Go on" : "Hold"}
        </Button>
        <Button icon="download" onClick={() => download(info, answers.list)} disabled={!answers.list.length}>
          Download
        </Button>
        <span class="hint" data-count={answers.count}>
          {format.plural(answers.count, "answer")}
          {answers.paused ? ", held" : answers.state === "open" ? "" : `, ${answers.state}`}
        </span>
      </div>
      <ProblemBox problem={answers.problem} />
      {answers.notice && <p class="notice">{answers.notice}</p>}
      {asked && (
        <Why
          query={info.name}
          answer={asked}
          newer={(answer) => newerLike(buffer.newest(), answer, variables, numeric)}
          onClose={() => setAsked(null)}
        />
      )}
      {!answers.list.length && !answers.problem && (
        <Empty>{info.state === "paused" ? "The query is paused." : "No answers yet."}</Empty>
      )}
      {answers.list.length > 0 && look === "table" && (
        <AnswerTable answers={answers.list} variables={variables} onWhy={isConstruct ? undefined : setAsked} />
      )}
      {answers.list.length > 0 && look === "chart" && <AnswerChart answers={answers.list} variables={variables} numeric={numeric} />}
      {answers.list.length > 0 && look === "map" && <AnswerMap answers={answers.list} variables={variables} numeric={numeric} />}
      {answers.list.length > 0 && look === "graph" && <AnswerGraph answers={answers.list} />}
    </>
  );
}

/** The newest answer about the same things, else the newest at all. */
function newerLike(list: Answer[], answer: Answer, variables: string[], numeric: string[]): Answer | undefined {
  const about = variables.filter((each) => !numeric.includes(each));
  const { key } = subjectOf(answer, about);
  const newer = list.filter((each) => each.t > answer.t && each.sign === answer.sign);
  return newer.findLast((each) => subjectOf(each, about).key === key) ?? newer[newer.length - 1];
}

/** Save what is kept: JSON lines of answers, or the triples of a CONSTRUCT. */
function download(info: QueryInfo, answers: Answer[]): void {
  const isTriples = info.form === "CONSTRUCT";
  const lines = isTriples
    ? answers.filter((each) => each.sign === "+").flatMap((each) => each.graph ?? [])
    : answers.map((each) => JSON.stringify(each));
  const kind = isTriples ? "application/n-quads" : "application/x-ndjson";
  const url = URL.createObjectURL(new Blob([lines.map((each) => `${each}\n`).join("")], { type: kind }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${info.name}.${isTriples ? "nq" : "jsonl"}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
