import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type {
  ListRunsOfScheduleResponse,
  ListUpcomingFiresResponse,
  Schedule,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import { OpenAlerts } from '../../parts/alerts/open-alerts.tsx';
import { Month } from '../../parts/month/month.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, place } from '../../state/route.ts';
import { Definition } from './definition.tsx';
import { Head } from './head.tsx';
import { Observed } from './observed.tsx';
import { callPath } from '../../state/schedule-paths.ts';
import { RecentRuns } from './recent-runs.tsx';
import './schedule.css';
import { Trends } from './trends.tsx';
import { Upcoming } from './upcoming.tsx';
import { Versions } from './versions.tsx';
import { Why } from './why/why.tsx';
import type { PageProps } from '../page-props.ts';

const SHOWN_FIRES = 10;

/** One schedule: how it stands, what became of its fires and why, and what can be done about it. */
export function SchedulePage({ params: { id = '' } }: PageProps) {
  const schedule = usePoll(`schedule ${id}`, (signal) => get<Schedule>(callPath(id), {}, signal));
  if (schedule.problem?.status === 404) return <Gone id={id} onDone={schedule.refresh} />;
  return <Loaded from={schedule}>{(data) => <Shown schedule={data} refreshSchedule={schedule.refresh} />}</Loaded>;
}

function Shown({ schedule, refreshSchedule }: { schedule: Schedule; refreshSchedule: () => void }) {
  const { id } = schedule;
  const hasTimes = schedule.after === null;
  const fires = usePoll<ListUpcomingFiresResponse>(`upcoming ${id} ${hasTimes} ${schedule.version}`, (signal) =>
    hasTimes
      ? get(callPath(id, '/upcoming'), { count: SHOWN_FIRES }, signal)
      : Promise.resolve({ items: [], warnings: [] }),
  );
  const runs = usePoll(`runs ${id}`, (signal) =>
    get<ListRunsOfScheduleResponse>(callPath(id, '/runs'), { limit: SHOWN_FIRES }, signal),
  );
  const [done, setDone] = useState(0);
  const refresh = (): void => {
    setDone(done + 1);
    refreshSchedule();
    fires.refresh();
    runs.refresh();
  };
  // While it is not known how often it fires, which view suits it is not known either; unless the user says so.
  const isReady = fires.data !== undefined || fires.problem !== undefined || place.value.query.has('view');
  return (
    <div class="stack">
      <Head schedule={schedule} onDone={refresh} />
      <OpenAlerts scheduleId={id} />
      {schedule.observe && <Observed schedule={schedule} until={schedule.observe.until} onDone={refresh} />}
      {hasTimes && isReady && (
        <Why
          asOf={`${schedule.version} ${done}`}
          schedule={schedule}
          everyMs={everyMs(fires.data?.items.map(({ fireAt }) => fireAt) ?? [])}
        />
      )}
      {!hasTimes && (
        <p class="card">
          It fires when runs of another schedule end, at no times of its own. Its runs below are all there is to know.
        </p>
      )}
      <div class="grid">
        {hasTimes && (
          <section class="card">
            <h2>Fires to come</h2>
            <Loaded from={fires}>
              {({ items, warnings }) => (
                <Upcoming schedule={schedule} fires={items} warnings={warnings} onDone={refresh} />
              )}
            </Loaded>
          </section>
        )}
        <Definition schedule={schedule} />
      </div>
      <Month
        {...{ days: fires.data?.days, zone: schedule.timezone ?? 'UTC', about: `${id} ${schedule.version}` }}
        ask={async (from, signal) =>
          (await get<ListUpcomingFiresResponse>(callPath(id, '/upcoming'), { from, count: 1 }, signal)).days
        }
      />
      <RecentRuns schedule={schedule} runs={runs} />
      <Trends schedule={schedule} />
      <Versions id={id} current={schedule} onDone={refresh} />
    </div>
  );
}

/** Between the fires to come, on the average. */
function everyMs(fires: readonly string[]): number | null {
  const [first, last] = [fires[0], fires.at(-1)];
  if (fires.length < 2 || first === undefined || last === undefined) return null;
  return (Date.parse(last) - Date.parse(first)) / (fires.length - 1);
}

/** No schedule has this id. If one had it, its versions and runs are readable still, and it can be brought back. */
function Gone({ id, onDone }: { id: string; onDone: () => void }) {
  return (
    <div class="stack">
      <h1 class="user">{id}</h1>
      <Empty title="There is no such schedule">
        <p>It was deleted, or never made.</p>
        <p>
          <a href={href('/schedules')}>All schedules</a> · <a href={href('/runs', { scheduleId: id })}>Its runs</a>
        </p>
      </Empty>
      <Versions id={id} current={null} onDone={onDone} />
    </div>
  );
}
