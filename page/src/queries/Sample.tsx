export function Sample(_props: { check: unknown; text: string; options: unknown; name: string | null }) {
  return <p class="empty">Comes soon.</p>;
}
