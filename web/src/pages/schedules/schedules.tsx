import { useState } from 'preact/hooks';
import { findSchedules } from '../../api/schedules.ts';
import { FilterBar, LabelFilter, OneOf, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, place } from '../../state/route.ts';
import { may, scope } from '../../state/session.ts';
import { oneZone } from '../../state/zone.ts';
import { Actions, NewSchedule } from './actions.tsx';
import { type Asked, Acts } from './acts.tsx';
import { type Chosen, useChosen } from './chosen.ts';
import { columnsIn } from './columns.tsx';
import { type Shown, countText, inOrder, labelsOf, ORDERS } from './order.ts';
import type { Row } from './chosen-calls.ts';
import { askSigns, scheduleTotal } from '../../api/signs.ts';

const RECENT = 20;
const EVERY_MS = 5_000;
/** Of a filter that few of very many match. */
const SLOW_EVERY_MS = 60_000;

const STATUSES = [
  ['', 'Any status'],
  ['active', 'active'],
  ['paused', 'paused'],
  ['error', 'error'],
  ['ended', 'ended'],
] as const;

const LATE = [
  ['', 'Late or not'],
  ['true', 'late'],
  ['false', 'not late'],
] as const;

/** What of the address is a filter of schedules. */
function filterInAddress() {
  const { query } = place.value;
  return {
    q: query.get('q') ?? undefined,
    status: query.get('status') ?? undefined,
    late: query.get('late') ?? undefined,
    label: query.getAll('label'),
  };
}

export function Schedules() {
  const filter = filterInAddress();
  const { query } = place.value;
  const [cursor, order] = [query.get('cursor'), query.get('order')];
  const key = JSON.stringify([filter, cursor]);
  const chosen = useChosen(key);
  const [asked, setAsked] = useState<Asked | null>(null);
  const isFiltered = Object.values(filter).some((value) => value !== undefined && value.length > 0);
  const list = usePoll(key, (signal) => findSchedules({ ...filter, cursor, recent: RECENT, limit: 50 }, signal), {
    keep: true,
    paceOf: ({ isSlow }) => (isSlow ? SLOW_EVERY_MS : EVERY_MS),
  });
  const rows = list.data?.items.filter(({ id }) => chosen.ids.has(id)) ?? [];
  return (
    <>
      <div class="bar">
        <h1>Schedules</h1>
        <Actions
          isFiltered={isFiltered}
          chosen={rows.length}
          onChoose={(action) => setAsked({ action, rows })}
          onChooseNone={() => chosen.replace([])}
        />
      </div>
      <FilterBar name="schedules">
        <TextFilter name="q" label="Id or description" width={24} />
        <OneOf name="status" label="Status" options={STATUSES} />
        <OneOf name="late" label="Late" options={LATE} />
        <LabelFilter known={labelsOf(list.data?.items ?? [])} />
        <OneOf name="order" label="Order" options={ORDERS} />
      </FilterBar>
      <Acts
        asked={asked}
        filter={{ ...filter, late: filter.late === undefined ? undefined : filter.late === 'true' }}
        onDone={(undone) => {
          chosen.replace(undone);
          list.refresh();
        }}
        onClose={() => setAsked(null)}
      />
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Nothing isFiltered={isFiltered} />
          ) : (
            <>
              <Table
                label="Schedules"
                columns={[
                  ...(may('admin') ? [boxesFor(items, chosen)] : []),
                  ...columnsIn(oneZone(items.map(({ timezone }) => timezone))),
                ]}
                rows={inOrder(items, order)}
                keyOf={({ id }) => id}
                isStale={list.isStale}
              />
              <Count count={items.length} isWhole={!cursor && !nextCursor} {...{ isFiltered, order }} />
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No schedule matches this filter">
        <a href={href('/schedules')}>Show all schedules</a>
      </Empty>
    );
  return (
    <Empty title="There are no schedules yet">
      <p class="quiet">A schedule says when firelock calls something of yours, and what.</p>
      {may('admin') ? <NewSchedule /> : <p class="quiet">Somebody with the role admin can make the first one.</p>}
    </Empty>
  );
}

/** A box for each row, and one for all of them. */
function boxesFor(rows: readonly Row[], { ids, toggle }: Chosen): Column<Row> {
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

const COUNTED_EVERY_MS = 60_000;

/** How many schedules the page shows, and of how many; those that a filter finds nobody counts, nor those of a scope. */
function Count(shown: Shown) {
  const { isWhole, isFiltered } = shown;
  const isAsked = !isWhole && !isFiltered && scope.value === null;
  const { data: total = null } = usePoll(
    `total ${isAsked}`,
    async (signal) => (isAsked ? scheduleTotal(await askSigns(signal)) : null),
    { everyMs: COUNTED_EVERY_MS },
  );
  return <p class="quiet">{countText(shown, total)}</p>;
}
