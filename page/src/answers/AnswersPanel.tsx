import type { QueryInfo } from "../api/types";
export function AnswersPanel({ info }: { info: QueryInfo }) {
  return <p class="empty">Comes soon: {info.name}</p>;
}
