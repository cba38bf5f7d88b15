import type { Calendar } from '../../../../client/src/generated/types.gen.ts';
import type { Column } from '../../parts/lists/table.tsx';
import { Define, type Kind } from '../../parts/named/define.tsx';
import { type FormProps, NamedPage, VERSION } from '../../parts/named/named-page.tsx';

const DATES_SHOWN = 6;

const KIND: Kind = {
  noun: 'calendar',
  hint: 'Schedules that exclude its days name it.',
  field: {
    name: 'dates',
    label: 'Days',
    hint: 'One a line: 2026-12-24, or from 2026-12-24/2027-01-02 with both ends. Faults count lines from 0.',
    read: (typed) =>
      typed
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    input: (props) => <textarea {...props} rows={10} spellcheck={false} />,
  },
};

export function Calendars() {
  return (
    <NamedPage<Calendar>
      noun="calendar"
      about="A calendar is a set of days on which the schedules that name it do not fire."
      {...{ columns: COLUMNS, Form }}
    />
  );
}

function Form({ existing, ...props }: FormProps<Calendar>) {
  return (
    <Define kind={KIND} existing={existing && { ...existing, value: existing.dates.join('\n') }} {...props} />
  );
}

const COLUMNS: readonly Column<Calendar>[] = [
  {
    head: 'Days',
    cell: ({ dates }) => (
      <>
        {dates.slice(0, DATES_SHOWN).map((date) => (
          <span key={date} class="label mono">
            {date}
          </span>
        ))}
        {dates.length > DATES_SHOWN && ` and ${dates.length - DATES_SHOWN} more`}
      </>
    ),
  },
  ...VERSION,
];
