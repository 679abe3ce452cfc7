/** Who we are for the service. */
import { getJson, onNoToken, setToken } from "../api/client";
import type { Role, Session } from "../api/types";
import { Store } from "./store";

export interface SessionState {
  known: boolean;
  role: Role | null;
  needsToken: boolean;
  version: string;
  /** Why the last token was not taken. */
  refused: boolean;
}

export const session = new Store<SessionState>({
  known: false,
  role: null,
  needsToken: false,
  version: "",
  refused: false,
});

export async function ask(): Promise<void> {
  const found = await getJson<Session>("/session");
  session.set({
    known: true,
    role: found.role,
    needsToken: found.needs_token,
    version: found.version,
    refused: false,
  });
}

export async function logIn(text: string): Promise<void> {
  setToken(text.trim());
  await ask();
  if (!session.value.role) {
    setToken(null);
    session.set({ ...session.value, refused: true });
  }
}

export function logOut(): void {
  setToken(null);
  location.reload();
}

onNoToken(() => {
  if (session.value.role) session.set({ ...session.value, role: null, needsToken: true });
});

/** Whether the caller may change things. */
export function isAdmin(state: SessionState): boolean {
  return state.role === "admin";
}
