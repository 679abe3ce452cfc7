export function WindowsPage(_props: { name?: string | null }) {
  return <p class="empty">Comes soon.</p>;
}
