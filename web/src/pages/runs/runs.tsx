import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type { ListRunsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { BulkDialog } from '../../parts/lists/bulk.tsx';
import { FilterBar, LabelFilter, OneOf, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { RunLink } from '../../parts/links.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, place, setQuery } from '../../state/route.ts';
import { may } from '../../state/session.ts';
import { labelsOf } from '../schedules/order.ts';
import { RunTable } from './run-table.tsx';
import { filterInAddress, sentFilter, SINCE } from './run-filter.ts';
import { MY_ZONE, timeText } from '../../state/zone.ts';
import { toneOf } from '../../parts/badge.tsx';

const LIVE_EVERY_MS = 1_000;

const TRIGGERS = [
  ['', 'Any trigger'],
  ['schedule', 'schedule'],
  ['catchUp', 'catch-up'],
  ['manual', 'manual'],
  ['backfill', 'backfill'],
  ['after', 'after another'],
  ['api', 'one-off'],
  ['notify', 'message of a notifier'],
] as const;

const UNMET = [
  ['', 'As expected or not'],
  ['start,finish,tooFast,result', 'not as expected'],
  ['start', 'not begun in time'],
  ['finish', 'not ended in time'],
  ['tooFast', 'ended too fast'],
  ['result', 'result not as expected'],
] as const;

export function Runs() {
  const filter = filterInAddress();
  const { query } = place.value;
  const cursor = query.get('cursor');
  const isLive = query.get('live') === '1' && cursor === null;
  const [action, setAction] = useState<'retry' | 'cancel' | null>(null);
  const isFiltered = Object.keys(sentFilter(filter)).length > 0;
  const list = usePoll(
    JSON.stringify([filter, cursor]),
    (signal) => get<ListRunsResponse>('/runs', { ...sentFilter(filter), cursor, limit: 50 }, signal),
    { keep: true, ...(isLive && { everyMs: LIVE_EVERY_MS }) },
  );
  return (
    <>
      <div class="bar">
        <h1>Runs</h1>
        <LiveTail isOn={isLive} />
        {may('operator') && <BulkButtons isFiltered={isFiltered && !query.has('key')} onChoose={setAction} />}
      </div>
      <FilterBar name="runs">
        <StatusFilter />
        <OneOf name="trigger" label="Trigger" options={TRIGGERS} />
        <OneOf name="unmet" label="As expected" options={UNMET} />
        <OneOf name="since" label="Since" options={SINCE} />
        <TextFilter name="scheduleId" label="Schedule's id" />
        <TextFilter name="batchId" label="Batch's id" />
        <LabelFilter known={labelsOf(list.data?.items ?? [])} />
        <Period />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Nothing isFiltered={isFiltered} />
          ) : (
            <>
              <RunTable label="Runs" runs={items} isStale={list.isStale} />
              <Pager nextCursor={nextCursor} first="Newest" />
            </>
          )
        }
      </Loaded>
      {action !== null && (
        <BulkDialog
          key={action}
          verb={action === 'retry' ? 'Retry' : 'Cancel'}
          things="runs"
          path="/runs/bulk"
          body={{ action, filter: sentFilter(filter) }}
          link={(id) => <RunLink id={id}>{id}</RunLink>}
          onDone={list.refresh}
          onClose={() => {
            setAction(null);
          }}
        />
      )}
    </>
  );
}

function LiveTail({ isOn }: { isOn: boolean }) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      title="Asks every second, so that new runs appear as they are made"
      onClick={() => {
        setQuery({ live: isOn ? null : '1' });
      }}
    >
      Live tail
    </button>
  );
}

interface BulkButtonsProps {
  isFiltered: boolean;
  onChoose: (action: 'retry' | 'cancel') => void;
}

function BulkButtons({ isFiltered, onChoose }: BulkButtonsProps) {
  const why = isFiltered ? undefined : 'Filter first: what it does, it does to all that match the filter';
  return (
    <>
      {(['retry', 'cancel'] as const).map((action) => (
        <button
          key={action}
          type="button"
          disabled={!isFiltered}
          title={why}
          onClick={() => {
            onChoose(action);
          }}
        >
          {action === 'retry' ? 'Retry…' : 'Cancel…'}
        </button>
      ))}
    </>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No run matches this filter">
      <a href={href('/runs')}>Show all runs</a>
    </Empty>
  ) : (
    <Empty title="There are no runs yet">
      <p class="quiet">Each fire of a schedule is a run, and so is each task that is asked for once.</p>
      <a href={href('/schedules')}>Go to the schedules</a>
    </Empty>
  );
}

/** A period that a link to this page has named; a click widens the filter to any time. */
function Period() {
  const { query } = place.value;
  const from = query.get('from');
  const to = query.get('to');
  if (from === null && to === null) return null;
  return (
    <button
      type="button"
      class="label"
      title="Remove the period from the filter"
      onClick={() => {
        setQuery({ from: null, to: null });
      }}
    >
      {from !== null && `from ${written(from)} `}
      {to !== null && `to ${written(to)} `}✕
    </button>
  );
}

function written(at: string): string {
  return Number.isNaN(Date.parse(at)) ? at : timeText(at, MY_ZONE);
}

const STATUSES = [
  'failed',
  'unknown',
  'abandoned',
  'pending',
  'running',
  'waiting',
  'succeeded',
  'skipped',
  'cancelled',
];

/** Which statuses to show; none chosen: all. */
function StatusFilter() {
  const chosen = new Set((place.value.query.get('status') ?? '').split(',').filter((status) => status !== ''));
  return (
    <div class="toggles" role="group" aria-label="Statuses">
      {STATUSES.map((status) => (
        <button
          key={status}
          type="button"
          class={`badge ${toneOf(status)}`}
          aria-pressed={chosen.has(status)}
          onClick={() => {
            const changed = new Set(chosen);
            if (!changed.delete(status)) changed.add(status);
            setQuery({ status: [...changed].join(',') });
          }}
        >
          {status}
        </button>
      ))}
    </div>
  );
}
