/**
 * A text editor with highlighting and errors at their places. It is in a shadow tree: there its
 * style sheets need no exception in the page's Content-Security-Policy.
 */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  type Completion,
  type CompletionContext,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState, type Text } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Place } from "../api/types";
import { highlighting, type Language, languageOf } from "./languages";

export interface Mark {
  place: Place;
  message: string;
  severity: "error" | "warning";
}

export interface EditorHandle {
  goTo: (line: number, column: number) => void;
}

interface Props {
  label: string;
  text: string;
  language: Language;
  onChange: (text: string) => void;
  /** Called on Ctrl-Enter. */
  onSubmit?: () => void;
  marks?: Mark[];
  readOnly?: boolean;
  minHeight?: string;
  maxHeight?: string;
  complete?: () => Completion[];
  handle?: (handle: EditorHandle | null) => void;
}

/** Marks changes that nobody typed; reporting them would call for others, without end. */
const FROM_OUTSIDE = Annotation.define<boolean>();

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--code)", fontSize: "13.5px" },
  ".cm-content": {
    caretColor: "var(--ink)",
    fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, "DejaVu Sans Mono", monospace',
    padding: "8px 0",
  },
  ".cm-scroller": { lineHeight: "1.55", overflow: "auto" },
  ".cm-gutters": { color: "var(--ink-soft)", backgroundColor: "transparent", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--ink) 5%, transparent)",
  },
  "&.cm-focused": { outline: "2px solid var(--focus)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--focus) 28%, transparent)",
  },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {
    backgroundColor: "color-mix(in srgb, var(--main) 25%, transparent)",
  },
  ".cm-tooltip": {
    color: "var(--ink)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line-strong)",
    borderRadius: "8px",
    overflow: "hidden",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    color: "var(--main-ink)",
    backgroundColor: "var(--main)",
  },
  ".cm-diagnostic": { padding: "5px 9px", fontFamily: "system-ui, sans-serif", maxWidth: "32rem" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "4px solid var(--warn)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad) 1.5px",
    textUnderlineOffset: "3px",
    backgroundColor: "color-mix(in srgb, var(--bad) 14%, transparent)",
  },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--warn) 1.5px",
    textUnderlineOffset: "3px",
  },
  ".cm-panels": { color: "var(--ink)", backgroundColor: "var(--panel)" },
  ".cm-panels input, .cm-panels button": {
    color: "var(--ink)",
    background: "var(--raised)",
    border: "1px solid var(--line-strong)",
    borderRadius: "5px",
  },
});

export function Editor(props: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef(props);
  now.current = props;
  const emitted = useRef<string[]>([]);
  const language = useRef(new Compartment());
  const readOnly = useRef(new Compartment());

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: now.current.text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          highlightSelectionMatches(),
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          indentUnit.of("  "),
          autocompletion({ override: [(context) => completions(context, now.current.complete)] }),
          keymap.of([
            {
              key: "Mod-Enter",
              run: () => {
                now.current.onSubmit?.();
                return true;
              },
            },
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...lintKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": now.current.label, spellcheck: "false" }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((each) => each.annotation(FROM_OUTSIDE))) return;
            const text = update.state.doc.toString();
            emitted.current.push(text);
            now.current.onChange(text);
          }),
          language.current.of(languageOf(now.current.language)),
          readOnly.current.of(readOnlyOf(now.current.readOnly)),
          highlighting,
          look,
          EditorView.theme({
            "&": { minHeight: now.current.minHeight ?? "220px", maxHeight: now.current.maxHeight ?? "60vh" },
            ".cm-content, .cm-gutter": { minHeight: now.current.minHeight ?? "220px" },
          }),
        ],
      }),
    });
    view.current = made;
    now.current.handle?.({
      goTo: (line, column) => {
        const at = offsetOf(made.state.doc, line, column);
        made.dispatch({ selection: { anchor: at }, scrollIntoView: true });
        made.focus();
      },
    });
    return () => {
      now.current.handle?.(null);
      made.destroy();
      view.current = null;
    };
  }, []);

  useEffect(() => {
    const made = view.current;
    if (!made) return;
    const known = emitted.current.indexOf(props.text);
    emitted.current = emitted.current.slice(known + 1);
    // What was typed comes back later, when more may have been typed.
    if (known >= 0 || made.state.doc.toString() === props.text) return;
    emitted.current = [];
    made.dispatch({
      changes: { from: 0, to: made.state.doc.length, insert: props.text },
      annotations: FROM_OUTSIDE.of(true),
    });
  }, [props.text]);

  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(props.language)) });
  }, [props.language]);

  useEffect(() => {
    view.current?.dispatch({ effects: readOnly.current.reconfigure(readOnlyOf(props.readOnly)) });
  }, [props.readOnly]);

  useEffect(() => {
    const made = view.current;
    if (!made) return;
    const doc = made.state.doc;
    made.dispatch(setDiagnostics(made.state, (props.marks ?? []).map((each) => diagnosticOf(doc, each))));
  }, [props.marks]);

  return <div class="editor" ref={host} />;
}

function readOnlyOf(is = false) {
  return [EditorState.readOnly.of(is), EditorView.editable.of(!is)];
}

/** Where a place of the service is: its columns count from 1. */
function offsetOf(doc: Text, line: number, column: number): number {
  const found = doc.line(Math.min(Math.max(1, line), doc.lines));
  return Math.min(found.from + Math.max(0, column - 1), found.to);
}

function diagnosticOf(doc: Text, mark: Mark): Diagnostic {
  const { line, column, end_line, end_column } = mark.place;
  let from = offsetOf(doc, line, column);
  let to = end_line && end_column ? offsetOf(doc, end_line, end_column) : from + 1;
  if (to <= from) to = Math.min(from + 1, doc.length);
  // At the end of the text there is nothing to underline but what is before.
  if (from === to) from = Math.max(0, from - 1);
  return { from, to, severity: mark.severity, message: mark.message };
}

function completions(context: CompletionContext, offer?: () => Completion[]) {
  const word = context.matchBefore(/[?$<:\p{L}\p{N}_./-]+/u);
  if (!offer || (!word && !context.explicit)) return null;
  if (word && word.to - word.from < 2 && !context.explicit) return null;
  const found = offer();
  if (word?.text.startsWith("?")) {
    const known = new Set(context.state.doc.toString().match(/[?$][\p{L}_][\p{L}\p{N}_]*/gu) ?? []);
    known.delete(word.text);
    return { from: word.from, options: [...known].map((label) => ({ label, type: "variable" })) };
  }
  return { from: word?.from ?? context.pos, options: found, validFor: /^[<:\p{L}\p{N}_./-]*$/u };
}
