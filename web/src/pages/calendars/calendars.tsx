import { useState } from 'preact/hooks';
import type { Calendar } from '../../../../clients/typescript/src/generated/types.gen.ts';
import type { Column } from '../../parts/lists/table.tsx';
import { DefineDialog } from '../../parts/named/define-dialog.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { type FormProps, NamedPage, VERSION } from '../../parts/named/named-page.tsx';

const DATES_SHOWN = 6;

const KIND = { noun: 'calendar', hint: 'Schedules that exclude its days name it.' };
const DATES = '/dates';
const VALID_UNTIL = '/validUntil';

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
  const [dates, setDates] = useState(existing?.dates.join('\n') ?? '');
  const [validUntil, setValidUntil] = useState(existing?.validUntil ?? '');
  const lines = dates.split('\n').map((line) => line.trim());
  const read = () => ({
    dates: lines.filter((line) => line !== ''),
    validUntil: validUntil === '' ? null : validUntil,
  });
  return (
    <DefineDialog {...{ kind: KIND, existing, paths: [DATES, VALID_UNTIL], read, ...props }}>
      {(faults) => (
        <>
          <Field
            {...{ label: 'Days', path: DATES, faults }}
            hint="One a line: 2026-12-24, or from 2026-12-24/2027-01-02 with both ends. Faults count lines from 0."
          >
            {(input) => (
              <textarea
                {...{ ...input, value: dates, rows: 10, spellcheck: false }}
                onInput={({ currentTarget }) => {
                  setDates(currentTarget.value);
                }}
              />
            )}
          </Field>
          <Field
            {...{ label: 'Valid until', path: VALID_UNTIL, faults }}
            hint="The last day that it covers. Warnings begin 90 days before that day."
          >
            {(input) => (
              <input
                {...{ ...input, type: 'date', value: validUntil }}
                onInput={({ currentTarget }) => {
                  setValidUntil(currentTarget.value);
                }}
              />
            )}
          </Field>
        </>
      )}
    </DefineDialog>
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
  { head: 'Valid until', cell: ({ validUntil }) => validUntil ?? <span class="quiet">–</span> },
  ...VERSION,
];
