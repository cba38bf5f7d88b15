import { href } from '../state/route.ts';

/** To the page of a schedule. */
export function ScheduleLink({ id }: { id: string }) {
  return (
    <a class="user" href={href(`/schedules/${encodeURIComponent(id)}`)}>
      {id}
    </a>
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
