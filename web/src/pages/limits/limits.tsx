import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type { Limit, ListLimitsResponse } from '../../../../client/src/generated/types.gen.ts';
import { Define, type Kind } from '../../parts/forms/define.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { usePoll } from '../../state/poll.ts';
import { place } from '../../state/route.ts';
import { may } from '../../state/session.ts';

const KIND: Kind = {
  noun: 'limit',
  path: '/limits',
  hint: 'Schedules and runs name it. A limit that is there already is replaced.',
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
  const [edited, setEdited] = useState<Limit | 'new' | null>(null);
  const cursor = place.value.query.get('cursor');
  const list = usePoll(
    `limits ${cursor}`,
    (signal) => get<ListLimitsResponse>('/limits', { cursor }, signal),
    {
      keep: true,
    },
  );
  return (
    <>
      <div class="bar">
        <h1>Limits</h1>
        {may('admin') && (
          <button type="button" onClick={() => setEdited('new')}>
            New limit…
          </button>
        )}
      </div>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Empty title="There are no limits">
              <p class="quiet">A limit says how many of the runs that name it may be under way at once.</p>
            </Empty>
          ) : (
            <>
              <Table label="Limits" columns={columnsFor(setEdited)} rows={items} keyOf={({ id }) => id} />
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
      {edited !== null && (
        <Define
          kind={KIND}
          existing={edited === 'new' ? null : { ...edited, value: String(edited.maxRunning) }}
          onDone={list.refresh}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

function columnsFor(onEdit: (limit: Limit) => void): readonly Column<Limit>[] {
  return [
    {
      head: 'Limit',
      kind: 'grow',
      cell: ({ id, description }) => (
        <>
          <span class="user">{id}</span>
          {description !== null && <div class="user quiet clip">{description}</div>}
        </>
      ),
    },
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
    ...(may('admin')
      ? [
          {
            head: <span class="unseen">Actions</span>,
            cell: (limit: Limit) => (
              <button type="button" aria-label={`Edit ${limit.id}`} onClick={() => onEdit(limit)}>
                Edit…
              </button>
            ),
          },
        ]
      : []),
  ];
}
