export function MappingsPage(_props: { name?: string | null }) {
  return <p class="empty">Comes soon.</p>;
}
