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

/** Ask again whenever something changes, but never twice at once: what is asked is costly. */
export function useAskedInTurn<T>(
  ask: (() => Promise<T>) | null,
  inputs: readonly unknown[],
  delayMs: number,
): Omit<Asked<T>, "again"> {
  const [state, setState] = useState<{ value: T | null; problem: Problem | null; busy: boolean }>({
    value: null,
    problem: null,
    busy: false,
  });
  const turns = useRef({ wanted: 0, running: false, ended: false });
  const latest = useRef(ask);
  latest.current = ask;

  useEffect(() => {
    turns.current.ended = false;
    return () => {
      turns.current.ended = true;
    };
  }, []);

  useEffect(() => {
    const own = turns.current;
    own.wanted += 1;
    const run = async (): Promise<void> => {
      const turn = own.wanted;
      const now = latest.current;
      if (own.running || own.ended) return;
      if (!now) {
        setState({ value: null, problem: null, busy: false });
        return;
      }
      own.running = true;
      setState((before) => ({ ...before, busy: true }));
      try {
        const value = await now();
        if (!own.ended) setState({ value, problem: null, busy: false });
      } catch (error) {
        if (!own.ended) setState((before) => ({ ...before, problem: asProblem(error), busy: false }));
      }
      own.running = false;
      if (own.wanted !== turn) await run();
    };
    const timer = setTimeout(() => void run(), delayMs);
    return () => clearTimeout(timer);
  }, inputs);
  return state;
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
