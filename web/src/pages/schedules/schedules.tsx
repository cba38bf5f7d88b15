import { useState } from 'preact/hooks';
import { findSchedules } from '../../api/schedules.ts';
import { FilterBar, LabelFilter, OneOf, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { Table } from '../../parts/lists/table.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, pageAt, place } from '../../state/route.ts';
import { may } from '../../state/session.ts';
import { oneZone } from '../../state/zone.ts';
import { columnsIn } from './columns.tsx';
import { ORDERS, countText, inOrder, labelsOf } from './order.ts';
import { PauseOrResume } from './pause-or-resume.tsx';

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
  const [action, setAction] = useState<'pause' | 'resume' | null>(null);
  const isFiltered = Object.values(filter).some((value) => value !== undefined && value.length > 0);
  const list = usePoll(
    JSON.stringify([filter, cursor]),
    (signal) => findSchedules({ ...filter, cursor, recent: RECENT, limit: 50 }, signal),
    { keep: true, paceOf: ({ isSlow }) => (isSlow ? SLOW_EVERY_MS : EVERY_MS) },
  );
  return (
    <>
      <div class="bar">
        <h1>Schedules</h1>
        {may('admin') && <Actions isFiltered={isFiltered} onChoose={setAction} />}
      </div>
      <FilterBar name="schedules">
        <TextFilter name="q" label="Id or description" width={24} />
        <OneOf name="status" label="Status" options={STATUSES} />
        <OneOf name="late" label="Late" options={LATE} />
        <LabelFilter known={labelsOf(list.data?.items ?? [])} />
        <OneOf name="order" label="Order" options={ORDERS} />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Nothing isFiltered={isFiltered} />
          ) : (
            <>
              <Table
                label="Schedules"
                columns={columnsIn(oneZone(items.map(({ timezone }) => timezone)))}
                rows={inOrder(items, order)}
                keyOf={({ id }) => id}
                isStale={list.isStale}
              />
              <p class="quiet">{countText(items.length, !cursor && !nextCursor, order)}</p>
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
      {action !== null && (
        <PauseOrResume
          key={action}
          action={action}
          filter={{ ...filter, late: filter.late === undefined ? undefined : filter.late === 'true' }}
          onDone={list.refresh}
          onClose={() => {
            setAction(null);
          }}
        />
      )}
    </>
  );
}

interface ActionsProps {
  isFiltered: boolean;
  onChoose: (action: 'pause' | 'resume') => void;
}

function Actions({ isFiltered, onChoose }: ActionsProps) {
  const why = isFiltered ? undefined : 'Filter first: what it does, it does to all that match the filter';
  const button = (action: 'pause' | 'resume', text: string) => (
    <button
      type="button"
      disabled={!isFiltered}
      title={why}
      onClick={() => {
        onChoose(action);
      }}
    >
      {text}
    </button>
  );
  return (
    <>
      {button('pause', 'Pause…')}
      {button('resume', 'Resume…')}
      <NewSchedule />
    </>
  );
}

const NEW = '/schedules/new';

function NewSchedule() {
  if (pageAt(NEW) === null) return null;
  return (
    <a class="button main" href={href(NEW)}>
      New schedule
    </a>
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
      {may('admin') ? (
        <NewSchedule />
      ) : (
        <p class="quiet">Somebody with the role admin can make the first one.</p>
      )}
    </Empty>
  );
}
