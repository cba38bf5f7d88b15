import { MY_ZONE, shownZone, timeText } from '../state/zone.ts';
import { useNow } from './now.ts';

interface TimeProps {
  /** ISO 8601; null or undefined: never. */
  at: string | null | undefined;
  /** Of the schedule that the time belongs to, where that is known. */
  zone?: string | null | undefined;
  /** The zone to show it in, if that is not for this time alone to say. */
  shown?: string | undefined;
  /** Says how long ago it was, or how soon it will be, too; `next`: it is to come, unless what was asked is a little old. */
  relative?: boolean | 'next';
}

const LITTLE_S = 15;

/** A moment in the zone that the user has chosen, whose name is always beside it. All zones are in its title. */
export function Time({ at, zone, shown = shownZone(zone), relative = false }: TimeProps) {
  if (!at) return <span class="quiet">–</span>;
  const title = [
    ...(zone ? [`${timeText(at, zone)} (${zone}, the schedule's)`] : []),
    `${timeText(at, MY_ZONE)} (${MY_ZONE}, mine)`,
    timeText(at, 'UTC'),
  ].join('\n');
  return (
    <time dateTime={at} title={title} class="time">
      {timeText(at, shown)}
      {relative && (
        <span class="quiet">
          {' '}
          <Ago at={at} isNext={relative === 'next'} />
        </span>
      )}
    </time>
  );
}

/** `3 min ago`, `in 2 h`. */
export function Ago({ at, isNext = false }: { at: string; isNext?: boolean }) {
  const seconds = Math.round((useNow() - Date.parse(at)) / 1000);
  if (seconds === 0 || (isNext && seconds > 0 && seconds < LITTLE_S)) return <span class="ago">now</span>;
  const ago = durationText(Math.abs(seconds) * 1000);
  return <span class="ago">{seconds >= 0 ? `${ago} ago` : `in ${ago}`}</span>;
}

/** `340 ms`, `4.2 s`, `3 min`, `5 h`, `12 days`; null or undefined: a dash. */
export function durationText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
