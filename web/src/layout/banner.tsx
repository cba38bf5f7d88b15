import { useEffect } from 'preact/hooks';
import { useNow } from '../parts/now.ts';
import { away } from '../state/reach.ts';
import { MY_ZONE, timeText } from '../state/zone.ts';
import { get } from '../api/http.ts';
import type { Maintenance, Observing } from '../../../clients/typescript/src/generated/types.gen.ts';
import { Time } from '../parts/time.tsx';
import { maintenance } from '../state/maintenance.ts';
import { usePoll } from '../state/poll.ts';
import { href } from '../state/route.ts';
import { may } from '../state/session.ts';

/** Away for less than this is not said: an instance that is started anew is back by then. */
const UNSAID_MS = 1_000;

/** Who does not answer, and since when. The page goes on asking, and the banner goes with the first answer. */
export function Banner() {
  const now = useNow();
  if (away.value === null || now - away.value.since < UNSAID_MS) return null;
  const { what, since } = away.value;
  const who = what === 'instance' ? 'This instance does not answer' : 'The database is out of reach';
  return (
    <div class="banner" role="alert">
      {who}, since {timeText(since, MY_ZONE)}. What you see is from before. Trying again…
    </div>
  );
}

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

/** On every page of an instance that only observes. */
export function ObservingBanner() {
  return may('viewer') ? <AskedObserving /> : null;
}

function AskedObserving() {
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
      {because === 'setting' && ', because FIRELOCK_OBSERVE is set'}. Nothing is planned, sent or changed here until{' '}
      <code>firelock take-over</code>.{readOnly && ' The database is read only.'}
      {reason !== null && (
        <div class="user clip" title={reason}>
          {reason}
        </div>
      )}
    </div>
  );
}
