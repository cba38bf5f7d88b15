import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type { Calendar, ListCalendarsResponse } from '../../../../client/src/generated/types.gen.ts';
import { Define, type Kind } from '../../parts/forms/define.tsx';
import { FilterBar, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { place } from '../../state/route.ts';
import { may } from '../../state/session.ts';

const DATES_SHOWN = 6;

const KIND: Kind = {
  noun: 'calendar',
  path: '/calendars',
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
  const [edited, setEdited] = useState<Calendar | 'new' | null>(null);
  const { query } = place.value;
  const asked = { q: query.get('q'), cursor: query.get('cursor') };
  const list = usePoll(
    `calendars ${JSON.stringify(asked)}`,
    (signal) => get<ListCalendarsResponse>('/calendars', asked, signal),
    { keep: true },
  );
  return (
    <>
      <div class="bar">
        <h1>Calendars</h1>
        {may('admin') && (
          <button type="button" onClick={() => setEdited('new')}>
            New calendar…
          </button>
        )}
      </div>
      <FilterBar name="calendars">
        <TextFilter name="q" label="Id or description" />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Empty title={asked.q === null ? 'There are no calendars' : 'No calendar matches this filter'}>
              <p class="quiet">
                A calendar is a set of days on which the schedules that name it do not fire.
              </p>
            </Empty>
          ) : (
            <>
              <Table label="Calendars" columns={columnsFor(setEdited)} rows={items} keyOf={({ id }) => id} />
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
      {edited !== null && (
        <Define
          kind={KIND}
          existing={edited === 'new' ? null : { ...edited, value: edited.dates.join('\n') }}
          onDone={list.refresh}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

function columnsFor(onEdit: (calendar: Calendar) => void): readonly Column<Calendar>[] {
  return [
    {
      head: 'Calendar',
      kind: 'grow',
      cell: ({ id, description }) => (
        <>
          <span class="user">{id}</span>
          {description !== null && <div class="user quiet clip">{description}</div>}
        </>
      ),
    },
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
    { head: 'Version', kind: 'number', cell: ({ version }) => version },
    { head: 'Changed', kind: 'minor', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
    ...(may('admin')
      ? [
          {
            head: <span class="unseen">Actions</span>,
            cell: (calendar: Calendar) => (
              <button type="button" aria-label={`Edit ${calendar.id}`} onClick={() => onEdit(calendar)}>
                Edit…
              </button>
            ),
          },
        ]
      : []),
  ];
}
