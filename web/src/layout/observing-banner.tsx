import { get } from '../api/http.ts';
import type { Observing } from '../../../clients/typescript/src/generated/types.gen.ts';
import { Time } from '../parts/time.tsx';
import { usePoll } from '../state/poll.ts';
import { may } from '../state/session.ts';

/** On every page of an instance that only observes. */
export function ObservingBanner() {
  return may('viewer') ? <Asked /> : null;
}

function Asked() {
  const { data } = usePoll('observing', (signal) => get<Observing>('/observing', {}, signal));
  if (data?.observing !== true) return null;
  const { because, since, reason, readOnly } = data;
  return (
    <div class="banner" role="status">
      This instance only observes
      {since !== null && (
        <>
          , since <Time at={since} />
        </>
      )}
      {because === 'setting' && ', because FIRELOCK_OBSERVE is set'}. Nothing is planned, sent or changed here
      until <code>firelock take-over</code>.{readOnly && ' The database is read only.'}
      {reason !== null && (
        <div class="user clip" title={reason}>
          {reason}
        </div>
      )}
    </div>
  );
}
