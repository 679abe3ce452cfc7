/** All queries at the left, one of them at the right. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { getJson } from "../api/client";
import type { QueryInfo } from "../api/types";
import { useAsked } from "../app/hooks";
import { go, hrefOf } from "../app/router";
import { isAdmin, session } from "../app/session";
import { useStore } from "../app/store";
import { Button, Empty, ProblemBox } from "../ui/basics";
import * as format from "../ui/format";
import { QueryDesk } from "./QueryDesk";

const EVERY_MS = 5000;
const MOST_LISTED = 300;
const MOST_ASKED = 1000;

export function QueriesPage({ name }: { name: string | null }): JSX.Element {
  const who = useStore(session);
  const [filter, setFilter] = useState("");
  const [fresh, setFresh] = useState(0);
  const list = useAsked(
    (signal) => getJson<{ queries: QueryInfo[]; total: number }>(`/queries?limit=${MOST_ASKED}`, signal),
    [fresh],
    { everyMs: EVERY_MS },
  );
  const queries = list.value?.queries ?? [];
  const shown = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    return queries.filter((each) => each.name.toLowerCase().includes(wanted));
  }, [queries, filter]);
  const changed = () => setFresh((now) => now + 1);
  return (
    <div class="beside">
      <aside class="panel side" aria-label="All queries">
        {isAdmin(who) && (
          <Button icon="plus" kind={name ? "plain" : "main"} onClick={() => go("queries")}>
            New query
          </Button>
        )}
        <label>
          <span class="hidden-label">Find a query</span>
          <input
            type="search"
            placeholder="Find"
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </label>
        <ProblemBox problem={list.problem} />
        <ul class="query-list">
          {shown.slice(0, MOST_LISTED).map((each) => (
            <li key={each.name}>
              <a href={hrefOf("queries", each.name)} aria-current={each.name === name ? "page" : undefined}>
                <span class={`dot ${each.state}`} title={each.state} />
                <span class="query-name">{each.name}</span>
                <span class="query-rate">{each.state === "running" ? format.rate(each.rate) : each.state}</span>
              </a>
            </li>
          ))}
        </ul>
        {shown.length > MOST_LISTED && <p class="hint">and {format.count(shown.length - MOST_LISTED)} more</p>}
        {list.value && !shown.length && <Empty>{queries.length ? "None of this name." : "No queries yet."}</Empty>}
      </aside>
      <QueryDesk key={name ?? ""} name={name} onChanged={changed} />
    </div>
  );
}
