import { href, place } from '../state/route.ts';

/** Of a list whose page is in the address, as `cursor`. What was before it, the browser's Back shows. */
export function Pager({ nextCursor, first }: { nextCursor: string | null; first: string }) {
  const { path, query } = place.value;
  const others = Object.fromEntries(query);
  const isFirst = !query.has('cursor');
  if (isFirst && nextCursor === null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {!isFirst && <a href={href(path, { ...others, cursor: null })}>{first}</a>}
      {nextCursor !== null && <a href={href(path, { ...others, cursor: nextCursor })}>Next page</a>}
    </nav>
  );
}
