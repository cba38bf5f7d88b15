import { get } from '../../api/http.ts';
import type { ListAlertsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { usePoll } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import { AlertTable } from './alert-table.tsx';

const SHOWN = 10;

/** What is wrong now, of one schedule or (null) of all; absent where nothing is. */
export function OpenAlerts({ scheduleId }: { scheduleId: string | null }) {
  const query = { open: 'true', scheduleId };
  const { data } = usePoll(`open alerts ${scheduleId ?? ''}`, (signal) =>
    get<ListAlertsResponse>('/alerts', { ...query, limit: SHOWN }, signal),
  );
  if (!data || data.items.length === 0) return null;
  return (
    <section class="card alarm">
      <h2>
        <a href={href('/alerts', query)}>Open alerts</a>
      </h2>
      <AlertTable
        label="Open alerts"
        alerts={data.items}
        without={scheduleId === null ? ['until'] : ['schedule', 'until']}
      />
      {data.nextCursor !== null && <p class="quiet more">and more: these are the newest</p>}
    </section>
  );
}
