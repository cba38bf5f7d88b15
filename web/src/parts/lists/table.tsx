import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  head: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  /** `number`: to the right; `grow`: takes the room that is left; `minor`: not on a phone. */
  kind?: 'number' | 'grow' | 'minor';
}

interface TableProps<Row> {
  /** What it shows, for those who do not see it. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  isStale?: boolean;
}

export function Table<Row>({ label, columns, rows, keyOf, isStale = false }: TableProps<Row>) {
  return (
    <div class={`table ${isStale ? 'stale' : ''}`} tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ head, kind }, index) => (
              <th key={index} scope="col" class={kind}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ cell, kind }, index) => (
                <td key={index} class={kind}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
