import { useEffect } from 'preact/hooks';
import { get } from '../api/http.ts';
import type { Maintenance } from '../../../clients/typescript/src/generated/types.gen.ts';
import { Time } from '../parts/time.tsx';
import { maintenance } from '../state/maintenance.ts';
import { usePoll } from '../state/poll.ts';
import { href } from '../state/route.ts';
import { may } from '../state/session.ts';

/** On every page while maintenance is on. */
export function MaintenanceBanner() {
  return may('viewer') ? <Asked /> : null;
}

function Asked() {
  const { data } = usePoll('maintenance', (signal) => get<Maintenance>('/maintenance', {}, signal));
  useEffect(() => {
    if (data) maintenance.value = data;
  }, [data]);
  if (maintenance.value?.on !== true) return null;
  const { reason, since, until, dispatch } = maintenance.value;
  return (
    <div class="banner" role="status">
      <a href={href('/maintenance')}>Maintenance is on</a>, since <Time at={since} />
      {until !== null && (
        <>
          , until <Time at={until} />
        </>
      )}
      .{' '}
      {dispatch === 'hold'
        ? 'Nothing is planned and nothing is sent.'
        : 'Nothing is planned; what was recorded is sent.'}
      {reason !== null && (
        <div class="user clip" title={reason}>
          {reason}
        </div>
      )}
    </div>
  );
}
