/** Records at the left, the mapping in the middle, triples at the right. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson, segment, send } from "../api/client";
import type { MappingInfo, PreviewResult } from "../api/types";
import { useAction, useAsked, useAskedInTurn } from "../app/hooks";
import { go } from "../app/router";
import { isAdmin, session } from "../app/session";
import { useStore } from "../app/store";
import { Badge, Button, Empty, Panel, ProblemBox } from "../ui/basics";
import { Editor, type EditorHandle, type Mark } from "../ui/Editor";
import * as format from "../ui/format";
import { shortIri } from "../rdf/terms";
import { RECORD, YARRRML } from "./examples";
import { handedOver } from "./handoff";
import { languageOfMapping } from "./language";
import { languageOfRecords, recordsOf } from "./records";
import { Triples } from "./Triples";

const DELAY_MS = 350;

export function MappingsPage({ name }: { name: string | null }): JSX.Element {
  const [turn, setTurn] = useState(0);
  const list = useAsked((signal) => getJson<{ mappings: MappingInfo[] }>("/mappings", signal), [turn]);
  const mappings = list.value?.mappings ?? [];
  return (
    <div class="stack">
      <ProblemBox problem={list.problem} />
      <div class="row">
        <label class="inline">
          Mapping{" "}
          <select value={name ?? ""} onChange={(event) => go("mappings", event.currentTarget.value || null)}>
            <option value="">a new one</option>
            {mappings.map((each) => (
              <option key={each.name} value={each.name}>
                {each.name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <MappingEditor key={name ?? ""} name={name} onChanged={() => setTurn(turn + 1)} />
    </div>
  );
}

function MappingEditor({ name, onChanged }: { name: string | null; onChanged: () => void }): JSX.Element {
  const who = useStore(session);
  const known = useAsked(
    name ? (signal) => getJson<MappingInfo>(`/mappings/${segment(name)}`, signal) : null,
    [name],
  );
  const sources = known.value?.sources ?? [];
  const [picked, setPicked] = useState<string | null>(null);
  const source = picked && sources.includes(picked) ? picked : (sources[0] ?? null);
  const sample = useAsked(
    source
      ? (signal) => getJson<{ records: string[] }>(`/streams/${segment(source)}/records`, signal).catch(() => ({ records: [] }))
      : null,
    [source],
  );
  const [text, setText] = useState<string | null>(null);
  const [records, setRecords] = useState<string | null>(null);
  const editor = useRef<EditorHandle | null>(null);
  useEffect(() => {
    const found = handedOver.value;
    if (!found || found.mapping !== name) return;
    setRecords(found.record);
    setPicked(found.source);
    handedOver.set(null);
  }, []);
  const shownText = text ?? known.value?.text ?? (name ? "" : YARRRML);
  const sampled = sample.value?.records.length ? sample.value.records.slice(0, 3).map(pretty).join("\n") : null;
  const shownRecords = records ?? (name ? (sampled ?? (sample.busy || known.busy ? "" : RECORD)) : RECORD);
  const given = useMemo(() => recordsOf(shownRecords), [shownRecords]);

  const preview = useAskedInTurn(
    shownText.trim()
      ? () =>
          send<PreviewResult>("POST", "/mappings/preview", {
            text: shownText,
            records: given,
            ...(sources.length > 1 && source ? { source } : {}),
          })
      : null,
    [shownText, shownRecords, source],
    DELAY_MS,
  );
  const result = preview.value;
  const problem = result?.problem ?? null;
  const marks = useMemo<Mark[]>(
    () =>
      (problem?.places ?? []).map((place) => ({
        place,
        severity: "error",
        message: [problem?.message, problem?.hint].filter(Boolean).join(". "),
      })),
    [problem],
  );
  const isOurs = !known.value || known.value.declared_by === "api";
  return (
    <>
      <div class="mapping-desk">
        <Panel title="Records" label="Sample records" actions={<Badge>{format.count(given.length)}</Badge>}>
          <Editor
            label="Sample records"
            language={languageOfRecords(shownRecords)}
            text={shownRecords}
            onChange={setRecords}
            minHeight="320px"
            maxHeight="64vh"
          />
          {sources.length > 1 && (
            <label class="inline under">
              Records of{" "}
              <select
                value={source ?? ""}
                onChange={(event) => {
                  setPicked(event.currentTarget.value);
                  setRecords(null);
                }}
              >
                {sources.map((each) => (
                  <option key={each} value={each}>
                    {shortIri(each)}
                  </option>
                ))}
              </select>
            </label>
          )}
          <p class="hint">JSON, JSON lines, CSV with a header, or XML.</p>
        </Panel>
        <Panel
          title="Mapping"
          label="The mapping"
          actions={<Badge>{languageOfMapping(shownText) === "yaml" ? "YARRRML" : "RML"}</Badge>}
        >
          <Editor
            label="The mapping"
            language={languageOfMapping(shownText)}
            text={shownText}
            onChange={setText}
            marks={marks}
            minHeight="320px"
            maxHeight="64vh"
            handle={(handle) => {
              editor.current = handle;
            }}
          />
          <ProblemBox problem={problem ?? preview.problem} onPlace={(line, column) => editor.current?.goTo(line, column)} />
        </Panel>
        <Panel
          title="Triples"
          label="The triples"
          actions={preview.busy ? <Badge>mapping…</Badge> : <Badge tone={problem ? "bad" : "good"}>{format.count(result?.triples.length ?? 0)}</Badge>}
        >
          {preview.problem ? <Empty>The records could not be mapped.</Empty> : <Outcome result={result} />}
        </Panel>
      </div>
      {isAdmin(who) && (
        <Declare name={name} info={known.value} text={shownText} ok={!!result && !problem} isOurs={isOurs} onChanged={onChanged} />
      )}
    </>
  );
}

function pretty(record: string): string {
  try {
    return JSON.stringify(JSON.parse(record));
  } catch {
    return record;
  }
}

function Outcome({ result }: { result: PreviewResult | null }): JSX.Element {
  if (!result) return <Empty>Mapping…</Empty>;
  if (result.problem) return <Empty>The mapping has a mistake.</Empty>;
  const many = result.records.length > 1;
  if (!result.triples.length && result.records.every((each) => !each.error)) return <Empty>No triples.</Empty>;
  return (
    <>
      {result.records.map((each) => (
        <div key={each.index}>
          {many && <h3>Record {each.index + 1}</h3>}
          <ProblemBox problem={each.error} />
          {each.triples.length > 0 && <Triples lines={each.triples} label={`Triples of record ${each.index + 1}`} />}
        </div>
      ))}
    </>
  );
}

function Declare(props: {
  name: string | null;
  info: MappingInfo | null;
  text: string;
  ok: boolean;
  isOurs: boolean;
  onChanged: () => void;
}): JSX.Element {
  const [given, setGiven] = useState(props.name ?? "");
  const [stream, setStream] = useState<string | null>(null);
  const [time, setTime] = useState<string | null>(null);
  const action = useAction();
  const shownStream = stream ?? props.info?.stream ?? "";
  const shownTime = time ?? (typeof props.info?.time === "string" ? props.info.time : "");
  const isSame = given === props.name;
  if (!props.isOurs && isSame) {
    return (
      <p class="hint">
        This mapping is in the application's file. What you change here is a draft.{" "}
        <Button onClick={() => setGiven("")}>Declare it under another name</Button>
      </p>
    );
  }
  const declare = () =>
    void action.run(async () => {
      const table: Record<string, string> = { text: props.text };
      if (shownStream.trim()) table["stream"] = shownStream.trim();
      if (shownTime.trim()) table["time"] = shownTime.trim();
      await send("PUT", `/mappings/${segment(given.trim())}`, table);
      props.onChanged();
      go("mappings", given.trim());
    });
  return (
    <Panel title={isSame ? "Change this mapping" : "Declare this mapping"}>
      <form
        class="register wide"
        onSubmit={(event) => {
          event.preventDefault();
          declare();
        }}
      >
        <label>
          Name
          <input autocomplete="off" spellcheck={false} value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
        </label>
        <label>
          Stream that it makes
          <input
            autocomplete="off"
            spellcheck={false}
            placeholder="that of its source"
            value={shownStream}
            onInput={(event) => setStream(event.currentTarget.value)}
          />
        </label>
        <label>
          Reference of the event time
          <input
            autocomplete="off"
            spellcheck={false}
            placeholder="that of the stream"
            value={shownTime}
            onInput={(event) => setTime(event.currentTarget.value)}
          />
        </label>
        <Button type="submit" kind="main" disabled={!given.trim() || !props.ok || action.busy}>
          {isSame ? "Replace" : "Declare"}
        </Button>
        {isSame && props.name && (
          <Button
            icon="trash"
            onClick={() =>
              void action.run(async () => {
                await send("DELETE", `/mappings/${segment(props.name ?? "")}`);
                props.onChanged();
                go("mappings");
              })
            }
          >
            Remove
          </Button>
        )}
      </form>
      <ProblemBox problem={action.problem} />
    </Panel>
  );
}
