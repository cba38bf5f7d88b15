import { get } from '../../api/http.ts';
import type {
  Limit,
  ListLimitsResponse,
  ListQueuesResponse,
  ListRunsResponse,
  ListSchedulesResponse,
  Queue,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import { OpenAlerts } from '../../parts/alerts/open-alerts.tsx';
import { Empty } from '../../parts/states.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, pageAt } from '../../state/route.ts';
import { may, scope } from '../../state/session.ts';
import { askSigns } from '../../api/signs.ts';
import { Instances } from './instances.tsx';
import { Trends } from './trends.tsx';
import { RunTable } from '../runs/run-table.tsx';
import { durationText } from '../../parts/time.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';

export function Overview() {
  const some = usePoll('any schedule', (signal) => get<ListSchedulesResponse>('/schedules', { limit: 1 }, signal), {
    everyMs: 30_000,
  });
  const signs = usePoll('signs', askSigns);
  const isEmpty = some.data?.items.length === 0;
  return (
    <div class="stack">
      <h1>Overview</h1>
      <OpenAlerts scheduleId={null} />
      {isEmpty && <FirstSchedule />}
      {signs.data?.readiness.warnings.map((warning) => (
        <p key={warning} class="warning">
          {warning}
        </p>
      ))}
      {!isEmpty && <Trends />}
      {!isEmpty && <Failures />}
      <div class="grid">
        {scope.value === null && <Instances />}
        {scope.value === null && signs.data && <OpenWork gauges={signs.data.gauges} />}
        <Queues />
        <Limits />
      </div>
    </div>
  );
}

function FirstSchedule() {
  const add = '/schedules/new';
  return (
    <Empty title="Nothing fires here yet">
      <p class="quiet">A schedule says when firelock calls something of yours, and what.</p>
      {may('admin') && pageAt(add) !== null ? (
        <a class="button main" href={href(add)}>
          Make the first schedule
        </a>
      ) : (
        <a href={href('/schedules')}>Go to the schedules</a>
      )}
    </Empty>
  );
}

const STATUS = 'failed,unknown,abandoned';
const DAY_MS = 86_400_000;

/** The last runs that did not succeed, of the last day. */
function Failures() {
  const { data } = usePoll('failures', (signal) => {
    const from = new Date(Date.now() - DAY_MS).toISOString();
    return get<ListRunsResponse>('/runs', { status: STATUS, from, limit: 5 }, signal);
  });
  if (!data || data.items.length === 0) return null;
  return (
    <section class="card">
      <h2>
        <a href={href('/runs', { status: STATUS, since: '24h' })}>Runs that did not succeed</a>
      </h2>
      <RunTable label="Runs that did not succeed" runs={data.items} />
    </section>
  );
}

const COUNTS = [
  ['Active schedules', 'firelock_schedules{status="active"}'],
  ['Paused schedules', 'firelock_schedules{status="paused"}'],
  ['Schedules that cannot be planned', 'firelock_schedules{status="error"}'],
  ['Late schedules', 'firelock_schedules_late'],
  ['Overdue schedules', 'firelock_schedules_overdue'],
  ['Pending runs', 'firelock_runs_open{status="pending"}'],
  ['Running runs', 'firelock_runs_open{status="running"}'],
  ['Waiting runs', 'firelock_runs_open{status="waiting"}'],
  ['Effects pending', 'firelock_effects_pending'],
  ['Handoffs of this instance under way', 'firelock_in_flight_handoffs'],
] as const;

const OLDEST = 'firelock_oldest_pending_seconds';

/** What this instance has counted last, some seconds ago: nothing is counted for this page. */
function OpenWork({ gauges }: { gauges: ReadonlyMap<string, number> }) {
  const known = COUNTS.flatMap(([name, gauge]) => {
    const value = gauges.get(gauge);
    return value === undefined ? [] : [[name, value] as const];
  });
  const oldest = gauges.get(OLDEST);
  return (
    <section class="card">
      <h2>Work</h2>
      <dl class="facts">
        {known.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value.toLocaleString('en')}</dd>
          </div>
        ))}
        {oldest !== undefined && (
          <div>
            <dt>Oldest pending run is due since</dt>
            <dd>{oldest === 0 ? '–' : durationText(oldest * 1000)}</dd>
          </div>
        )}
      </dl>
    </section>
  );
}

const SHOWN = 10;

const queueColumns: readonly Column<Queue>[] = [
  { head: 'Queue', kind: 'grow', cell: ({ queue }) => <span class="user">{queue}</span> },
  { head: 'Pending', kind: 'number', cell: ({ pending }) => pending },
  { head: 'Running', kind: 'number', cell: ({ running }) => running },
  {
    head: 'Oldest',
    kind: 'number',
    cell: ({ pending, oldestPendingSeconds }) => (pending === 0 ? '–' : durationText(oldestPendingSeconds * 1000)),
  },
  { head: 'Workers', kind: 'number', cell: ({ workers }) => workers },
];

/** Where workers pull; absent while no run uses one. */
function Queues() {
  const { data } = usePoll('queues', (signal) => get<ListQueuesResponse>('/queues', {}, signal));
  if (!data || data.items.length === 0) return null;
  const most = data.items.toSorted((a, b) => b.oldestPendingSeconds - a.oldestPendingSeconds).slice(0, SHOWN);
  return (
    <section class="card">
      <h2>Queues</h2>
      <Table label="Queues" columns={queueColumns} rows={most} keyOf={({ queue }) => queue} />
    </section>
  );
}

const limitColumns: readonly Column<Limit>[] = [
  { head: 'Limit', kind: 'grow', cell: ({ id }) => <span class="user">{id}</span> },
  { head: 'Running', kind: 'number', cell: ({ running, maxRunning }) => `${running} of ${maxRunning}` },
  { head: 'Waiting', kind: 'number', cell: ({ waiting }) => waiting },
];

/** How many of what may run at once; absent while none is used. */
function Limits() {
  const { data } = usePoll('limits', (signal) => get<ListLimitsResponse>('/limits', { limit: SHOWN }, signal));
  if (!data || data.items.length === 0) return null;
  return (
    <section class="card">
      <h2>Limits</h2>
      <Table label="Limits" columns={limitColumns} rows={data.items} keyOf={({ id }) => id} />
    </section>
  );
}
