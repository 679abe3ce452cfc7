/** Asks for the token of the service. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button, Panel } from "../ui/basics";
import { logIn, session } from "./session";
import { useStore } from "./store";

export function TokenGate(): JSX.Element {
  const [text, setText] = useState("");
  const { refused } = useStore(session);
  return (
    <Panel title="This service wants a token" class="gate">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim()) void logIn(text);
        }}
      >
        <p class="hint">
          The operator made it with <code>quadweir serve --new-token</code>. This tab keeps it until it is
          closed, and sends it to this service only.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={text}
            aria-invalid={refused}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        {refused && (
          <p class="problem" role="alert">
            The service does not know this token.
          </p>
        )}
        <Button type="submit" kind="main" disabled={!text.trim()}>
          Use it
        </Button>
      </form>
    </Panel>
  );
}
