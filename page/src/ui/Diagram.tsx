/** Boxes and arrows, laid out by dagre, with zoom; boxes can be chosen by mouse and keyboard. */
import { Graph, layout } from "@dagrejs/dagre";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSize } from "../app/hooks";
import { Button } from "./basics";

export interface Box {
  id: string;
  width: number;
  height: number;
  kind: string;
  /** What screen readers say. */
  label: string;
  body: ComponentChildren;
  onChoose?: () => void;
}

export interface Arrow {
  from: string;
  to: string;
  label?: string;
  kind?: string;
  title?: string;
  /** How thick, 0 to 1. */
  weight?: number;
  /** Whether something moves along it. */
  moving?: boolean;
}

interface Point {
  x: number;
  y: number;
}

interface Rect extends Point {
  width: number;
  height: number;
}

function side(rect: Rect, direction: "LR" | "TB", sign: 1 | -1): Point {
  return direction === "LR"
    ? { x: rect.x + (sign * rect.width) / 2, y: rect.y }
    : { x: rect.x, y: rect.y + (sign * rect.height) / 2 };
}

interface Placed {
  boxes: Map<string, Point>;
  paths: Map<string, Point[]>;
  width: number;
  height: number;
}

const MARGIN = 16;

function place(boxes: Box[], arrows: Arrow[], direction: "LR" | "TB", labelled: boolean): Placed {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({
    rankdir: direction,
    nodesep: 18,
    ranksep: labelled ? 84 : direction === "TB" ? 26 : 56,
    edgesep: 10,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const each of boxes) graph.setNode(each.id, { width: each.width, height: each.height });
  arrows.forEach((each, number) => {
    if (graph.hasNode(each.from) && graph.hasNode(each.to))
      graph.setEdge(each.from, each.to, {}, String(number));
  });
  layout(graph);
  const found: Placed = { boxes: new Map(), paths: new Map(), width: 0, height: 0 };
  for (const each of boxes) {
    const node = graph.node(each.id) as Point;
    found.boxes.set(each.id, { x: node.x - each.width / 2, y: node.y - each.height / 2 });
  }
  arrows.forEach((each, number) => {
    if (!graph.hasNode(each.from) || !graph.hasNode(each.to)) return;
    const edge = graph.edge(each.from, each.to, String(number)) as { points: Point[] };
    // Arrows leave and enter at the middle of a side, not where the line to the next point would.
    const [begin, end] = [graph.node(each.from), graph.node(each.to)] as [Rect, Rect];
    const inner = edge.points.slice(1, -1);
    found.paths.set(String(number), [side(begin, direction, 1), ...inner, side(end, direction, -1)]);
  });
  const size = graph.graph() as { width?: number; height?: number };
  found.width = Math.ceil(size.width ?? 0);
  found.height = Math.ceil(size.height ?? 0);
  return found;
}

/** A smooth line through points, level at both ends. */
function curve(points: Point[], direction: "LR" | "TB"): string {
  const first = points[0];
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  for (let n = 1; n < points.length; n += 1) {
    const from = points[n - 1];
    const to = points[n];
    if (!from || !to) continue;
    const half = direction === "LR" ? (to.x - from.x) / 2 : (to.y - from.y) / 2;
    path +=
      direction === "LR"
        ? `C${from.x + half},${from.y} ${to.x - half},${to.y} ${to.x},${to.y}`
        : `C${from.x},${from.y + half} ${to.x},${to.y - half} ${to.x},${to.y}`;
  }
  return path;
}

function middle(points: Point[]): Point {
  const at = (points.length - 1) / 2;
  const low = points[Math.floor(at)] ?? { x: 0, y: 0 };
  const high = points[Math.ceil(at)] ?? low;
  return { x: (low.x + high.x) / 2, y: (low.y + high.y) / 2 };
}

let lastId = 0;

export function Diagram(props: {
  label: string;
  boxes: Box[];
  arrows: Arrow[];
  direction?: "LR" | "TB";
  chosen?: string | null;
  maxHeight?: number;
}): JSX.Element {
  const { boxes, arrows, direction = "LR", maxHeight = 560 } = props;
  const [attach, size] = useSize<HTMLDivElement>();
  const [zoom, setZoom] = useState<number | null>(null);
  const marker = useRef(`arrow-${(lastId += 1)}`).current;
  const scroller = useRef<HTMLDivElement | null>(null);
  const labelled = arrows.some((each) => each.label);
  // Numbers change every second, places do not.
  const shape = `${direction}|${labelled}|${boxes.map((each) => `${each.id}:${each.width}x${each.height}`).join("|")}|${arrows
    .map((each) => `${each.from}>${each.to}`)
    .join("|")}`;
  const placed = useMemo(() => place(boxes, arrows, direction, labelled), [shape]);
  useEffect(() => setZoom(null), [shape]);

  const fitting = size.width
    ? Math.min(1, Math.max(0.6, Math.min(size.width / placed.width, maxHeight / placed.height)))
    : 1;
  const scale = zoom ?? fitting;
  const height = Math.min(maxHeight, placed.height * scale + 2);
  const change = (by: number) => setZoom(Math.min(2.5, Math.max(0.2, scale * by)));
  useDragging(scroller);

  return (
    <div class="diagram">
      <div
        class="diagram-scroll"
        ref={(element) => {
          scroller.current = element;
          attach(element);
        }}
        style={{ height: `${Math.max(80, height)}px` }}
      >
        <svg
          width={placed.width * scale}
          height={placed.height * scale}
          viewBox={`0 0 ${placed.width || 1} ${placed.height || 1}`}
          role="group"
          aria-label={props.label}
        >
          <defs>
            <marker
              id={marker}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0,0.5 7.5,4 0,7.5z" class="arrow-head" />
            </marker>
          </defs>
          {arrows.map((each, number) => {
            const points = placed.paths.get(String(number));
            if (!points) return null;
            const at = middle(points);
            const path = curve(points, direction);
            return (
              <g key={`${each.from}>${each.to}>${number}`} class={`arrow ${each.kind ?? ""}`}>
                {each.title && <title>{each.title}</title>}
                <path d={path} marker-end={`url(#${marker})`} style={{ strokeWidth: `${1.2 + 2.6 * (each.weight ?? 0)}px` }} />
                {each.moving && <path d={path} class="moving" style={{ strokeWidth: `${1.2 + 2.6 * (each.weight ?? 0)}px` }} />}
                {each.label && (
                  <text x={at.x} y={at.y - 5} text-anchor="middle">
                    {each.label}
                  </text>
                )}
              </g>
            );
          })}
          {boxes.map((each) => {
            const at = placed.boxes.get(each.id);
            if (!at) return null;
            const choose = each.onChoose;
            return (
              <g
                key={each.id}
                class={`box ${each.kind} ${choose ? "can-choose" : ""} ${props.chosen === each.id ? "chosen" : ""}`}
                transform={`translate(${at.x} ${at.y})`}
                {...(choose
                  ? {
                      role: "button",
                      // Attributes of SVG keep their letters, and only small ones count.
                      tabindex: 0,
                      "aria-pressed": props.chosen === each.id,
                      onClick: choose,
                      onKeyDown: (event: KeyboardEvent) => {
                        if (event.key !== "Enter" && event.key !== " ") return;
                        event.preventDefault();
                        choose();
                      },
                    }
                  : { role: "img" })}
                aria-label={each.label}
                data-id={each.id}
              >
                <rect width={each.width} height={each.height} rx="8" />
                {each.body}
              </g>
            );
          })}
        </svg>
      </div>
      <div class="diagram-tools">
        <Button icon="zoomIn" label="Larger" kind="quiet" onClick={() => change(1.25)} />
        <Button icon="zoomOut" label="Smaller" kind="quiet" onClick={() => change(0.8)} />
        <Button icon="fit" label="Fit" kind="quiet" onClick={() => setZoom(null)} />
      </div>
    </div>
  );
}

/** Move what is larger than its frame with the mouse. */
function useDragging(scroller: { current: HTMLElement | null }): void {
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let from: { x: number; y: number; left: number; top: number } | null = null;
    const down = (event: PointerEvent) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      if ((event.target as Element).closest(".can-choose")) return;
      from = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
      element.setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent) => {
      if (!from) return;
      element.scrollLeft = from.left - (event.clientX - from.x);
      element.scrollTop = from.top - (event.clientY - from.y);
    };
    const up = () => {
      from = null;
    };
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", up);
    return () => {
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", move);
      element.removeEventListener("pointerup", up);
      element.removeEventListener("pointercancel", up);
    };
  }, []);
}

/** Cut a text to what fits into a box; small letters are about 0.56 em wide, those of titles are bold. */
export function fitted(text: string, width: number, size = 12): string {
  const most = Math.max(3, Math.floor(width / (size * (size > 12 ? 0.63 : 0.57))));
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}
