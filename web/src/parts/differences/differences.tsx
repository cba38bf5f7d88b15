import type { Difference } from './difference.ts';
import { Table } from '../lists/table.tsx';

/** Field by field, what was and what is. Values are JSON. */
export function Differences({
  label,
  differences,
  heads = ['Before', 'After'],
}: {
  label: string;
  differences: readonly Difference[];
  heads?: readonly [before: string, after: string];
}) {
  if (differences.length === 0) return <p class="quiet">No field differs.</p>;
  return (
    <div class="differences">
      <Table
        label={label}
        rows={differences}
        keyOf={({ path }) => path}
        columns={[
          { head: 'Field', cell: ({ path }) => <code class="user">{path.slice(1)}</code> },
          { head: heads[0], cell: ({ before }) => <Value text={before} mark="−" /> },
          { head: heads[1], cell: ({ after }) => <Value text={after} mark="+" /> },
        ]}
      />
    </div>
  );
}

function Value({ text, mark }: { text: string | null; mark: string }) {
  if (text === null) return <span class="quiet">–</span>;
  return (
    <code class={`user ${mark === '+' ? 'good' : 'bad'}`}>
      {mark} {text}
    </code>
  );
}
