import { href } from '../state/route.ts';

/** To the page of a schedule. */
export function ScheduleLink({ id }: { id: string }) {
  return (
    <a class="user" href={href(`/schedules/${encodeURIComponent(id)}`)}>
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
