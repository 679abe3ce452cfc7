/** A value that components can watch. */
import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  private readonly watchers = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    this.watchers.forEach((call) => call());
  }

  watch(call: () => void): () => void {
    this.watchers.add(call);
    return () => this.watchers.delete(call);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.value);
  useEffect(() => {
    setValue(() => store.value);
    return store.watch(() => setValue(() => store.value));
  }, [store]);
  return value;
}
