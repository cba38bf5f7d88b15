import { get } from '../../api/http.ts';
import type { ListAlertsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { AlertTable } from '../../parts/alerts/alert-table.tsx';
import { FilterBar, OneOf, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, place } from '../../state/route.ts';

const OPEN = [
  ['', 'Open or over'],
  ['true', 'open'],
] as const;

/** What is wrong with schedules, and what was. */
export function Alerts() {
  const { query } = place.value;
  const names = ['open', 'scheduleId', 'cursor'] as const;
  const asked = Object.fromEntries(names.map((name) => [name, query.get(name)]));
  const list = usePoll(
    `alerts ${JSON.stringify(asked)}`,
    (signal) => get<ListAlertsResponse>('/alerts', { ...asked, limit: 50 }, signal),
    { keep: true },
  );
  return (
    <>
      <div class="bar">
        <h1>Alerts</h1>
      </div>
      <FilterBar name="alerts">
        <OneOf name="open" label="Open or over" options={OPEN} />
        <TextFilter name="scheduleId" label="Schedule's id" />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Nothing isFiltered={query.has('open') || query.has('scheduleId')} />
          ) : (
            <>
              <AlertTable label="Alerts" alerts={items} isStale={list.isStale} />
              <Pager nextCursor={nextCursor} first="Newest" />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No alert matches this filter">
      <a href={href('/alerts')}>Show all alerts</a>
    </Empty>
  ) : (
    <Empty title="Nothing has been wrong">
      <p class="quiet">
        An alert opens when something breaks a schedule, and is over when it is well again. Notifiers tell of it.
      </p>
      <a href={href('/notifiers')}>Go to the notifiers</a>
    </Empty>
  );
}
