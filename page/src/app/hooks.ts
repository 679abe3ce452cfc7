/** Asking the service from a component. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem } from "../api/client";
import type { Problem } from "../api/types";

export interface Asked<T> {
  value: T | null;
  problem: Problem | null;
  busy: boolean;
  again: () => void;
}

/** Ask when something changes; the last value stays while the next one is on its way. */
export function useAsked<T>(
  ask: ((signal: AbortSignal) => Promise<T>) | null,
  inputs: readonly unknown[],
  options: { delayMs?: number; everyMs?: number } = {},
): Asked<T> {
  const [state, setState] = useState<{ value: T | null; problem: Problem | null; busy: boolean }>({
    value: null,
    problem: null,
    busy: ask !== null,
  });
  const [turn, setTurn] = useState(0);
  const { delayMs = 0, everyMs = 0 } = options;

  useEffect(() => {
    if (!ask) {
      setState({ value: null, problem: null, busy: false });
      return;
    }
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    setState((now) => ({ ...now, busy: true }));
    const run = async () => {
      try {
        if (!document.hidden) {
          const value = await ask(abort.signal);
          setState({ value, problem: null, busy: false });
        }
      } catch (error) {
        if (!abort.signal.aborted)
          setState((now) => ({ ...now, problem: asProblem(error), busy: false }));
      }
      if (everyMs && !abort.signal.aborted) timer = setTimeout(() => void run(), everyMs);
    };
    timer = setTimeout(() => void run(), delayMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [...inputs, turn]);

  const again = useCallback(() => setTurn((now) => now + 1), []);
  return { ...state, again };
}

/** Run an action of the user; `problem` is what went wrong with the last one. */
export function useAction(): {
  busy: boolean;
  problem: Problem | null;
  run: (action: () => Promise<void>) => Promise<void>;
  clear: () => void;
} {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = useCallback(async (action: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await action();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  }, []);
  const clear = useCallback(() => setProblem(null), []);
  return { busy, problem, run, clear };
}

/** The size of an element, as it changes. */
export function useSize<E extends Element>(): [(element: E | null) => void, { width: number; height: number }] {
  const [size, setSize] = useState({ width: 0, height: 0 });
  const observer = useRef<ResizeObserver | null>(null);
  const attach = useCallback((element: E | null) => {
    observer.current?.disconnect();
    observer.current = null;
    if (!element) return;
    observer.current = new ResizeObserver((entries) => {
      const box = entries[0]?.contentRect;
      if (box) setSize({ width: Math.round(box.width), height: Math.round(box.height) });
    });
    observer.current.observe(element);
  }, []);
  return [attach, size];
}
