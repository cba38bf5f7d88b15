import { hrefHere, place } from '../../state/route.ts';

/** Of a list whose page is in the address, as `cursor`. What was before it, the browser's Back shows. */
export function Pager({ nextCursor, first }: { nextCursor: string | null; first: string }) {
  const isFirst = !place.value.query.has('cursor');
  if (isFirst && nextCursor === null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {!isFirst && <a href={hrefHere({ cursor: null })}>{first}</a>}
      {nextCursor !== null && <a href={hrefHere({ cursor: nextCursor })}>Next page</a>}
    </nav>
  );
}
