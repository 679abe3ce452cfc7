/** The small parts that all views are made of. */
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { Icon, type IconName } from "../app/icons";
import type { Problem, Warning } from "../api/types";

export function Panel(props: {
  title: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
  label?: string;
}): JSX.Element {
  return (
    <section class={`panel ${props.class ?? ""}`} aria-label={props.label}>
      <header class="panel-head">
        <h2>{props.title}</h2>
        {props.actions && <div class="panel-actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  );
}

export function Button(props: {
  children?: ComponentChildren;
  icon?: IconName;
  label?: string;
  onClick?: (event: MouseEvent) => void;
  kind?: "plain" | "main" | "danger" | "quiet";
  disabled?: boolean;
  pressed?: boolean;
  type?: "button" | "submit";
  id?: string;
}): JSX.Element {
  return (
    <button
      id={props.id}
      type={props.type ?? "button"}
      class={`button ${props.kind ?? "plain"} ${props.children ? "" : "only-icon"}`}
      aria-label={props.label}
      title={props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </button>
  );
}

export function Badge(props: { tone?: string; children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${props.tone ?? ""}`}>{props.children}</span>;
}

export function StateBadge({ state }: { state: string }): JSX.Element {
  const tone = state === "running" ? "good" : state === "paused" ? "warn" : "bad";
  return (
    <Badge tone={tone}>
      <span class="dot" />
      {state}
    </Badge>
  );
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <div class="empty">{children}</div>;
}

/** An error as the service reports it, with its hint. */
export function ProblemBox(props: {
  problem: Problem | null;
  onPlace?: (line: number, column: number) => void;
}): JSX.Element | null {
  const { problem } = props;
  if (!problem) return null;
  const place = problem.places[0];
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{problem.message}</strong>
        {place && (
          <button
            type="button"
            class="place"
            onClick={() => props.onPlace?.(place.line, place.column)}
            disabled={!props.onPlace}
          >
            line {place.line}, column {place.column}
          </button>
        )}
      </p>
      {problem.detail && <p>{problem.detail}</p>}
      {problem.hint && <p class="hint">{problem.hint}</p>}
    </div>
  );
}

export function WarningList({ warnings }: { warnings: Warning[] }): JSX.Element | null {
  if (!warnings.length) return null;
  return (
    <ul class="warnings">
      {warnings.map((each) => (
        <li key={each.message}>
          {each.message}
          {each.hint ? <span class="hint"> {each.hint}</span> : null}
        </li>
      ))}
    </ul>
  );
}

export interface Tab<T extends string> {
  id: T;
  label: ComponentChildren;
}

/** Tabs that arrow keys move between. */
export function Tabs<T extends string>(props: {
  label: string;
  tabs: Tab<T>[];
  chosen: T;
  onChoose: (tab: T) => void;
  panelId?: string;
}): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = props.tabs.findIndex((each) => each.id === props.chosen);
    const next = (at + step + props.tabs.length) % props.tabs.length;
    const tab = props.tabs[next];
    if (!tab) return;
    props.onChoose(tab.id);
    list.current?.querySelectorAll<HTMLButtonElement>("button")[next]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={props.label} ref={list} onKeyDown={move}>
      {props.tabs.map((each) => (
        <button
          key={each.id}
          type="button"
          role="tab"
          aria-selected={each.id === props.chosen}
          aria-controls={props.panelId}
          tabIndex={each.id === props.chosen ? 0 : -1}
          onClick={() => props.onChoose(each.id)}
        >
          {each.label}
        </button>
      ))}
    </div>
  );
}

/** A number with its name. */
export function Figure(props: {
  name: string;
  value: ComponentChildren;
  tone?: string;
  title?: string;
}): JSX.Element {
  return (
    <div class={`figure ${props.tone ?? ""}`} title={props.title}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}
