import type { Column } from '../../parts/lists/table.tsx';
import type { Row } from './chosen-calls.ts';
import type { Chosen } from './chosen.ts';

/** A box for each row, and one for all of them. */
export function boxesFor(rows: readonly Row[], { ids, toggle }: Chosen): Column<Row> {
  const all = rows.map(({ id }) => id);
  const count = all.filter((id) => ids.has(id)).length;
  return {
    head: (
      <input
        type="checkbox"
        aria-label="Choose all on this page"
        checked={count === all.length}
        indeterminate={count > 0 && count < all.length}
        onChange={({ currentTarget }) => toggle(all, currentTarget.checked)}
      />
    ),
    cell: ({ id }) => (
      <input
        type="checkbox"
        aria-label={`Choose ${id}`}
        checked={ids.has(id)}
        onChange={({ currentTarget }) => toggle([id], currentTarget.checked)}
      />
    ),
  };
}
