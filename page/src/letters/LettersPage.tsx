export function LettersPage(_props: { name?: string | null }) {
  return <p class="empty">Comes soon.</p>;
}
