import type { Limit } from '../../../../clients/typescript/src/generated/types.gen.ts';
import type { Column } from '../../parts/lists/table.tsx';
import { Define, type Kind } from '../../parts/named/define.tsx';
import { type FormProps, NamedPage } from '../../parts/named/named-page.tsx';

const KIND: Kind = {
  noun: 'limit',
  hint: 'Schedules and runs name it.',
  field: {
    name: 'maxRunning',
    label: 'At most running at once',
    hint: 'Over all instances and workers. A smaller number stops nothing that is under way.',
    // What is no number is sent as it is: the daemon says what is wrong with it.
    read: (typed) => (/^-?\d+$/.test(typed.trim()) ? Number(typed) : typed),
    input: (props) => <input {...props} type="text" inputMode="numeric" size={8} />,
  },
};

export function Limits() {
  return (
    <NamedPage<Limit>
      noun="limit"
      about="A limit says how many of the runs that name it may be under way at once."
      {...{ columns: COLUMNS, Form }}
    />
  );
}

function Form({ existing, ...props }: FormProps<Limit>) {
  return <Define kind={KIND} existing={existing && { ...existing, value: String(existing.maxRunning) }} {...props} />;
}

const COLUMNS: readonly Column<Limit>[] = [
  {
    head: 'Running',
    kind: 'number',
    cell: ({ running, maxRunning }) => (
      <>
        {running} of {maxRunning}
        <div>
          <progress value={running} max={maxRunning} aria-label="Running, of the most that may" />
        </div>
      </>
    ),
  },
  { head: 'Waiting', kind: 'number', cell: ({ waiting }) => waiting },
];
