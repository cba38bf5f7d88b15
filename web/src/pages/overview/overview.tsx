import { get } from '../../api/http.ts';
import type { ListSchedulesResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { OpenAlerts } from '../../parts/alerts/open-alerts.tsx';
import { Empty } from '../../parts/states.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, pageAt } from '../../state/route.ts';
import { may, scope } from '../../state/session.ts';
import { Failures } from './failures.tsx';
import { askSigns } from '../../api/signs.ts';
import { Instances } from './instances.tsx';
import { Limits, Queues } from './queues-and-limits.tsx';
import { Trends } from './trends.tsx';
import { OpenWork } from './open-work.tsx';

export function Overview() {
  const some = usePoll(
    'any schedule',
    (signal) => get<ListSchedulesResponse>('/schedules', { limit: 1 }, signal),
    { everyMs: 30_000 },
  );
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
