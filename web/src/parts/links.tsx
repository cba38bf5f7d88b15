import { href } from '../state/route.ts';
import { pagePath } from '../state/schedule-paths.ts';

/** The schedules that an `after` follows. */
export function FollowedLink({ id }: { id: string }) {
  if (id === '*') return <>any schedule</>;
  return id.endsWith('*') ? <span class="user">{id}</span> : <ScheduleLink id={id} />;
}

/** To the page of a schedule. */
export function ScheduleLink({ id }: { id: string }) {
  return (
    <a class="user" href={href(pagePath(id))}>
      {id}
    </a>
  );
}

/** To a connection, in their list. */
function ConnectionLink({ id }: { id: string }) {
  return (
    <a class="user" href={href('/connections', { q: id })}>
      {id}
    </a>
  );
}

/** To a calendar, in their list. */
export function CalendarLink({ id }: { id: string }) {
  return (
    <a class="user" href={href('/calendars', { q: id })}>
      {id}
    </a>
  );
}

/** To a notifier, in their list. */
export function NotifierLink({ id }: { id: string }) {
  return (
    <a class="user" href={href('/notifiers', { q: id })}>
      {id}
    </a>
  );
}

interface Origin {
  scheduleId: string | null;
  notifierId: string | null;
}

/** What a run is of: a schedule, a notifier whose message it is, or nothing but itself. */
export function OriginLink({ of: { scheduleId, notifierId } }: { of: Origin }) {
  if (scheduleId !== null) return <ScheduleLink id={scheduleId} />;
  if (notifierId === null) return <span class="quiet">one-off</span>;
  return (
    <>
      <span class="quiet">message of</span> <NotifierLink id={notifierId} />
    </>
  );
}

/** Before the path of a target; nothing before a URL of its own. */
export function Below({ connection }: { connection: string | null }) {
  if (connection === null) return null;
  return (
    <>
      <ConnectionLink id={connection} />:{' '}
    </>
  );
}

/** To the page of a run. */
export function RunLink({ id, children }: { id: string; children?: string }) {
  return (
    <a class="mono" href={href(`/runs/${id}`)} title={id}>
      {children ?? shortId(id)}
    </a>
  );
}

/** The beginning of a run's id is its moment, which runs of one moment share: the end tells them apart. */
function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}
