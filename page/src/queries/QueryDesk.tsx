/** One query: its text, what it means, how it runs, and its answers. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { AnswersPanel } from "../answers/AnswersPanel";
import { getJson, segment, send } from "../api/client";
import type { CheckResult, QueryInfo } from "../api/types";
import { useAction, useAsked } from "../app/hooks";
import { go } from "../app/router";
import { isAdmin, session } from "../app/session";
import { useStore } from "../app/store";
import { overview } from "../overview/store";
import { Badge, Button, Empty, Figure, Panel, ProblemBox, StateBadge, Tabs, WarningList } from "../ui/basics";
import { Editor, type EditorHandle, type Mark } from "../ui/Editor";
import * as format from "../ui/format";
import { completionsOfQuery } from "./completions";
import { EXAMPLES } from "./examples";
import { Meaning } from "./Meaning";
import { Plan } from "./Plan";
import { Sample } from "./Sample";
import { Translation } from "./Translation";

type Look = "answers" | "meaning" | "plan" | "sample" | "translation";
const CHECK_DELAY_MS = 250;

export function QueryDesk(props: { name: string | null; onChanged: () => void }): JSX.Element {
  const { name } = props;
  const who = useStore(session);
  const known = useAsked(
    name ? (signal) => getJson<QueryInfo>(`/queries/${segment(name)}`, signal) : null,
    [name],
    { everyMs: 3000 },
  );
  const [text, setText] = useState<string | null>(null);
  const [given, setGiven] = useState(name ?? "");
  const [look, setLook] = useState<Look>(name ? "answers" : "meaning");
  const editor = useRef<EditorHandle | null>(null);
  const action = useAction();
  const saved = known.value?.text ?? null;
  const firstStream = useFirstStream();
  const example = firstStream === null ? "" : (EXAMPLES[0]?.text(firstStream) ?? "");
  const shown = text ?? saved ?? (name ? "" : example);
  const options = useMemo(() => optionsOf(known.value), [known.value?.base, known.value?.content]);

  const check = useAsked(
    shown.trim()
      ? (signal) => send<CheckResult>("POST", "/check", { text: shown, ...options }, signal)
      : null,
    [shown, options],
    { delayMs: CHECK_DELAY_MS },
  );
  const marks = useMemo(() => marksOf(check.value), [check.value]);
  const isChanged = text !== null && text !== saved;
  const canRegister = isAdmin(who) && !!given.trim() && !action.busy && check.value?.ok === true && !check.busy;

  const register = useCallback(() => {
    if (!canRegister) return;
    void action.run(async () => {
      const target = given.trim();
      await send("PUT", `/queries/${segment(target)}`, { text: shown, ...options });
      props.onChanged();
      if (target === name) {
        known.again();
        setText(null);
        setLook("answers");
      } else {
        go("queries", target);
      }
    });
  }, [canRegister, given, shown, options, name]);

  const change = (run: () => Promise<unknown>) =>
    void action.run(async () => {
      await run();
      props.onChanged();
      known.again();
    });

  const info = known.value;
  const tabs = [
    ...(name ? [{ id: "answers" as Look, label: "Answers" }] : []),
    { id: "meaning" as Look, label: "Meaning" },
    { id: "plan" as Look, label: "Plan" },
    { id: "sample" as Look, label: "Try it" },
    { id: "translation" as Look, label: "Translate" },
  ];
  if (!name && firstStream === null) return <Empty>Asking the service…</Empty>;
  if (name && known.problem?.status === 404) return <ProblemBox problem={known.problem} />;
  return (
    <div class="stack">
      <Panel
        title={
          <>
            <span class="break">{name ?? "A new query"}</span> {info && <StateBadge state={info.state} />}{" "}
            {check.value?.dialect && <Badge>{check.value.dialect}</Badge>}
          </>
        }
        actions={
          <>
            {!name && (
              <label class="inline">
                Begin with{" "}
                <select
                  onChange={(event) => {
                    const example = EXAMPLES[Number(event.currentTarget.value)];
                    if (example) setText(example.text(firstStream ?? ""));
                  }}
                >
                  {EXAMPLES.map((each, place) => (
                    <option key={each.name} value={place}>
                      {each.name}
                    </option>
                  ))}
                </select>
              </label>
            )}
            {name && info && isAdmin(who) && (
              <>
                {info.state === "running" && (
                  <Button
                    icon="pause"
                    onClick={() => change(() => send("PATCH", `/queries/${segment(name)}`, { state: "paused" }))}
                  >
                    Pause
                  </Button>
                )}
                {info.state === "paused" && (
                  <Button
                    icon="play"
                    onClick={() => change(() => send("PATCH", `/queries/${segment(name)}`, { state: "running" }))}
                  >
                    Resume
                  </Button>
                )}
                <RemoveButton
                  onRemove={() =>
                    void action.run(async () => {
                      await send("DELETE", `/queries/${segment(name)}`);
                      props.onChanged();
                      go("queries");
                    })
                  }
                />
              </>
            )}
          </>
        }
      >
        <Editor
          label="The query"
          language="query"
          text={shown}
          onChange={setText}
          onSubmit={register}
          marks={marks}
          complete={completionsOfQuery}
          readOnly={!isAdmin(who) && !!name}
          minHeight={name ? "120px" : "200px"}
          maxHeight="46vh"
          handle={(handle) => {
            editor.current = handle;
          }}
        />
        <div aria-live="polite">
          <ProblemBox
            problem={check.value?.problem ?? check.problem}
            onPlace={(line, column) => editor.current?.goTo(line, column)}
          />
          <WarningList warnings={check.value?.ok ? check.value.warnings : []} />
        </div>
        {isAdmin(who) && (
          <form
            class="register"
            onSubmit={(event) => {
              event.preventDefault();
              register();
            }}
          >
            <label>
              <span class="hidden-label">Name of the query</span>
              <input
                id="query-name"
                placeholder="Name, as in jams"
                autocomplete="off"
                spellcheck={false}
                value={given}
                onInput={(event) => setGiven(event.currentTarget.value)}
              />
            </label>
            <Button type="submit" kind="main" disabled={!canRegister || (given === name && !isChanged)}>
              {given && given === name ? "Replace" : "Register"}
            </Button>
            {isChanged && name && <Button onClick={() => setText(null)}>Discard changes</Button>}
            <span class="hint">Ctrl-Enter does the same.</span>
          </form>
        )}
        <ProblemBox problem={action.problem} onPlace={(line, column) => editor.current?.goTo(line, column)} />
      </Panel>
      {info && name && <Facts info={info} />}
      <Panel
        title={<Tabs label="What to look at" tabs={tabs} chosen={look} onChoose={setLook} />}
        label="About the query"
      >
        {look === "answers" && name && info && <AnswersPanel key={name} info={info} />}
        {look === "meaning" && <Meaning check={check.value} />}
        {look === "plan" && <Plan check={check.value} name={isChanged ? null : name} />}
        {look === "sample" && <Sample check={check.value} text={shown} options={options} name={isChanged ? null : name} />}
        {look === "translation" && (
          <Translation
            text={shown}
            options={options}
            ok={check.value?.explanation != null}
            onUse={(next) => setText(next)}
          />
        )}
      </Panel>
    </div>
  );
}

function Facts({ info }: { info: QueryInfo }): JSX.Element {
  return (
    <dl class="figures totals">
      <Figure name="Answers" value={format.count(info.answers)} />
      <Figure name="Rate" value={format.rate(info.rate)} />
      <Figure name="Form" value={info.form ?? "–"} />
      <Figure name="Shared with" value={format.plural(info.shared_with ?? 0, "query", "queries")} />
      <Figure name="Network" value={info.network} />
      {info.reason && <Figure name="Stopped because" value={info.reason} tone="bad" />}
    </dl>
  );
}

function RemoveButton({ onRemove }: { onRemove: () => void }): JSX.Element {
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (!asked) return;
    const timer = setTimeout(() => setAsked(false), 5000);
    return () => clearTimeout(timer);
  }, [asked]);
  return asked ? (
    <Button kind="danger" icon="trash" onClick={onRemove}>
      Really remove
    </Button>
  ) : (
    <Button icon="trash" onClick={() => setAsked(true)}>
      Remove
    </Button>
  );
}

/** The stream of examples; once it is known, it stays, so that nothing changes what somebody types. */
function useFirstStream(): string | null {
  const { document } = useStore(overview);
  const first = useRef<string | null>(null);
  if (!document) return first.current;
  const streams = (document?.nodes ?? []).filter((each) => each.kind === "stream");
  const read = streams.find((each) => each.source === "mapping") ?? streams[0];
  first.current ??= read?.label ?? "http://example.org/stream";
  return first.current;
}

function optionsOf(info: QueryInfo | null): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  if (info?.base) found["base"] = info.base;
  if (info?.content) found["content"] = info.content;
  if (info?.allow_unbounded?.length) found["allow_unbounded"] = info.allow_unbounded;
  return found;
}

function marksOf(check: CheckResult | null): Mark[] {
  if (!check) return [];
  const problem = check.problem;
  const errors = (problem?.places ?? []).map((place) => ({
    place,
    severity: "error" as const,
    message: [problem?.message, problem?.hint].filter(Boolean).join(". "),
  }));
  const warnings = check.warnings.flatMap((each) =>
    (each.places ?? []).map((place) => ({ place, severity: "warning" as const, message: each.message })),
  );
  return [...errors, ...warnings];
}
