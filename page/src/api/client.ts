/** Requests to the service. The token is in this tab's session storage and nowhere else. */
import type { Problem } from "./types";

const TOKEN = "quadweir-token";
const listeners = new Set<() => void>();

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function setToken(text: string | null): void {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
}

/** Call when the service asks for a token. */
export function onNoToken(call: () => void): () => void {
  listeners.add(call);
  return () => listeners.delete(call);
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
  const known = token();
  return known ? { ...more, authorization: `Bearer ${known}` } : more;
}

export async function problemOf(response: Response): Promise<ProblemError> {
  let problem: Problem;
  try {
    problem = (await response.json()) as Problem;
    if (typeof problem.message !== "string") throw new TypeError("no problem document");
  } catch {
    problem = unknown(response.status, `the service answered ${response.status}`);
  }
  if (response.status === 401) listeners.forEach((call) => call());
  return new ProblemError({ ...problem, places: problem.places ?? [] });
}

function unknown(status: number, message: string, hint: string | null = null): Problem {
  return { status, code: "QW-REQUEST", message, detail: null, hint, places: [] };
}

export function asProblem(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  const text = error instanceof Error ? error.message : String(error);
  return unknown(0, "the service does not answer", text);
}

interface Options {
  method?: string;
  json?: unknown;
  signal?: AbortSignal;
  accept?: string;
}

async function ask(path: string, options: Options): Promise<Response> {
  const more: Record<string, string> = { accept: options.accept ?? "application/json" };
  let body: string | undefined;
  if (options.json !== undefined) {
    more["content-type"] = "application/json";
    body = JSON.stringify(options.json);
  }
  const response = await fetch(path, {
    method: options.method ?? (body === undefined ? "GET" : "POST"),
    headers: headers(more),
    body,
    signal: options.signal,
    redirect: "error",
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(path, { signal })).json()) as T;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await ask(path, { signal, accept: "*/*" })).text();
}

export async function send<T>(
  method: string,
  path: string,
  json?: unknown,
  signal?: AbortSignal,
): Promise<T | null> {
  const response = await ask(path, { method, json, signal });
  return response.status === 204 ? null : ((await response.json()) as T);
}

/** A segment of a path. */
export const segment = encodeURIComponent;
