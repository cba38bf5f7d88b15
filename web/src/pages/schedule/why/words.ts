import type { Schedule } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import type { Told } from './outcome.ts';

/** What became of an occurrence and why, as a sentence or two; what its run knows comes beside it. */
export function whyText({ state, reason, outcome, fireAt }: Told, schedule: Schedule): string {
  switch (state) {
    case 'fired':
      return FIRED[outcome] ?? 'It fired.';
    case 'missed':
      return MISSED[reason ?? ''] ?? 'It was missed.';
    case 'skipped':
      if (reason === 'request') return 'Somebody asked for it to be skipped.';
      if (reason === 'expired') return 'It waited for expiresAfterSeconds, and had not begun by then.';
      return `An earlier run was still active, and the schedule does not let two run at once (overlap: ${schedule.overlap}).`;
    case 'paused':
      if (Date.parse(fireAt) > Date.now())
        return 'The schedule is paused: unless it is resumed before, this does not fire.';
      return 'The schedule was paused then. What is due during a pause does not fire, and is not made up for.';
    case 'excluded':
      return `Its day is excluded, by ${excludedBy(reason ?? '')}: the schedule does not fire on such days.`;
    case 'upcoming':
      return upcomingText(reason, schedule.error);
  }
}

const FIRED: Partial<Record<Told['outcome'], string>> = {
  succeeded: 'It fired, and its run succeeded.',
  fired: 'It fired. Its run says what became of it.',
  open: 'Its run is recorded, and not over yet.',
  failed: 'It fired, and its run failed.',
  abandoned: 'It was recorded, but recovery gave its run up.',
  unknown: 'It fired, but whether it arrived is not known, and it must not be sent twice.',
  cancelled: 'It fired, and its run was cancelled.',
};

const MISSED: Record<string, string> = {
  latest:
    'It was too late when an instance could plan it (later than graceSeconds). catchUp is latest, so a later run stands for it.',
  skip: 'It was too late when an instance could plan it (later than graceSeconds). catchUp is skip, so nothing was fired instead.',
  limit: 'It was too late when an instance could plan it, and more were missed than catchUpLimit lets fire.',
  retention:
    'It lies before what is kept: either it was not planned, or its run, which may have fired, has been dropped since.',
  unknown: 'No record explains it. Records may have been removed, or the rules of the zone were others then.',
};

function excludedBy(reason: string): string {
  if (/^(?:mon|tue|wed|thu|fri|sat|sun)$/.test(reason)) return `the weekday or calendar ${reason}`;
  return /^\d{4}-\d\d-\d\d/.test(reason) ? `the date ${reason}` : `the calendar ${reason}`;
}

function upcomingText(reason: string | undefined, error: string | null): string {
  if (reason === 'error') return `It is to come, but the schedule cannot be planned: ${error ?? 'see above'}.`;
  return 'It is still to come.';
}
