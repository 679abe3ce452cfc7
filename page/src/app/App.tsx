/** The frame of all views: navigation, theme, the token. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { LettersPage } from "../letters/LettersPage";
import { MappingsPage } from "../mappings/MappingsPage";
import { OverviewPage } from "../overview/OverviewPage";
import { overview, watchOverview } from "../overview/store";
import { QueriesPage } from "../queries/QueriesPage";
import { Button } from "../ui/basics";
import { WindowsPage } from "../windows/WindowsPage";
import { Icon } from "./icons";
import { hrefOf, route, type View } from "./router";
import { ask, logOut, session } from "./session";
import { useStore } from "./store";
import { setTheme, type Theme, theme } from "./theme";
import { TokenGate } from "./TokenGate";

const TITLES: Record<View, string> = {
  overview: "Overview",
  queries: "Queries",
  mappings: "Mappings",
  windows: "Windows",
  letters: "Dead letters",
};

export function App(): JSX.Element {
  const who = useStore(session);
  const at = useStore(route);
  const [down, setDown] = useState(false);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const run = () =>
      void ask().then(
        () => setDown(false),
        () => {
          setDown(true);
          timer = setTimeout(run, 2000);
        },
      );
    run();
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => (who.role ? watchOverview() : undefined), [who.role]);
  useEffect(() => {
    document.title = `${at.name ? `${at.name} – ` : ""}${TITLES[at.view]} – Quadweir`;
    window.scrollTo(0, 0);
  }, [at]);

  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <nav class="nav" aria-label="Views">
        <a class="brand" href={hrefOf("overview")} aria-label="Quadweir, overview">
          <Logo />
          <span>Quadweir</span>
        </a>
        <ul>
          {(Object.keys(TITLES) as View[]).map((view) => (
            <li key={view}>
              <a href={hrefOf(view)} aria-current={at.view === view ? "page" : undefined}>
                <Icon name={view} />
                <span>{TITLES[view]}</span>
                {view === "letters" && <LetterCount />}
              </a>
            </li>
          ))}
        </ul>
        <div class="nav-foot">
          <Connection down={down} />
          <ThemeChooser />
          {who.needsToken && who.role && (
            <Button icon="out" label="Forget the token" kind="quiet" onClick={logOut} />
          )}
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <h1>{TITLES[at.view]}</h1>
        {!who.known && (
          <p class="empty">{down ? "The service does not answer. Trying again…" : "Connecting…"}</p>
        )}
        {who.known && !who.role && <TokenGate />}
        {who.role && <Content view={at.view} name={at.name} />}
      </main>
    </div>
  );
}

function Content({ view, name }: { view: View; name: string | null }): JSX.Element {
  switch (view) {
    case "overview":
      return <OverviewPage />;
    case "queries":
      return <QueriesPage name={name} />;
    case "mappings":
      return <MappingsPage name={name} />;
    case "windows":
      return <WindowsPage name={name} />;
    case "letters":
      return <LettersPage />;
  }
}

function LetterCount(): JSX.Element | null {
  const { document } = useStore(overview);
  const dead = (document?.networks ?? []).reduce((sum, each) => sum + each.metrics.dead_letters, 0);
  if (!dead) return null;
  return <span class="count">{dead > 999 ? "999+" : dead}</span>;
}

function Connection({ down }: { down: boolean }): JSX.Element {
  const { state, document } = useStore(overview);
  const isLive = state === "open" && !down;
  const words = isLive ? "live" : state === "connecting" ? "connecting" : "not connected";
  const version = document?.service.version;
  return (
    <span class={`connection ${isLive ? "good" : "warn"}`} role="status" title={version ? `Quadweir ${version}` : ""}>
      <span class="dot" />
      <span>{words}</span>
    </span>
  );
}

const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function ThemeChooser(): JSX.Element {
  const now = useStore(theme);
  const icon = now === "auto" ? "auto" : now === "light" ? "sun" : "moon";
  const words = { auto: "as the system says", light: "light", dark: "dark" }[now];
  return <Button icon={icon} kind="quiet" label={`Colours: ${words}`} onClick={() => setTheme(NEXT[now])} />;
}

function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M5 11c4-4 7 4 11 0s7 4 11 0M5 17c4-4 7 4 11 0s7 4 11 0" class="water" />
      <path d="M9 23v3M16 23v3M23 23v3" class="posts" />
    </svg>
  );
}
