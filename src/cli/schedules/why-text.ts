import { runText } from '../runs/run-text.ts';
import type { OccurrenceAnswer, RunAnswer, ScheduleAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';
import { printable } from '../terminal/shown-text.ts';
import { paintStatus } from '../terminal/paint.ts';
import { triggerText } from './schedule-text.ts';

export interface Explained {
  schedule: ScheduleAnswer;
  period: { from: string | undefined; to: string | undefined };
  /** The occurrences, each with its run if that lies in the period. */
  occurrences: (OccurrenceAnswer & { run: RunAnswer | null })[];
  /** Runs that belong to no occurrence: manual ones, for example. */
  otherRuns: RunAnswer[];
  nextCursor: string | null;
}

/** What happened to each fire, in words; then the runs that no schedule planned. */
export function explanationLines(explained: Explained, view: View): string[] {
  const { schedule, occurrences, otherRuns } = explained;
  return [
    standing(schedule, view),
    ...(occurrences.length > 0 ? occurrenceLines(occurrences, view) : noneLines(explained, view)),
    ...(otherRuns.length > 0 ? otherRunLines(otherRuns, view) : []),
    view.zones,
  ];
}

/** Sentences, not a table: a user reads them as a whole. */
function occurrenceLines(occurrences: Explained['occurrences'], view: View): string[] {
  return occurrences.map((occurrence) => {
    const { fireAt, state, runId } = occurrence;
    const words = printable(occurrenceText(occurrence, view));
    const run = runId === undefined ? '' : ` (run ${runId})`;
    return `${view.time(fireAt)}  ${paintStatus(state, view.paint)}: ${words}${run}`;
  });
}

/** A schedule that follows another one has no fire times of its own. */
function noneLines({ schedule, period: { from, to } }: Explained, view: View): string[] {
  return schedule.after ? [] : [`no fire was due between ${view.time(from)} and ${view.time(to)}`];
}

function otherRunLines(runs: readonly RunAnswer[], view: View): string[] {
  return [
    'runs that stand for none of its fire times:',
    ...runs.map((run) => {
      const words = printable(runText(run, view));
      return `${view.time(run.scheduledFor)}  ${run.trigger}: ${words} (run ${run.id})`;
    }),
  ];
}

function standing(schedule: ScheduleAnswer, view: View): string {
  const { id, status, error, pauseReason, pauseUntil, nextFireAt, late, timezone } = schedule;
  const zone = timezone === null ? '' : ` (${timezone})`;
  const parts = [
    `${id} fires ${triggerText(schedule)}${zone} and is ${status}`,
    pauseReason === null ? null : `because: ${pauseReason}`,
    pauseUntil === null ? null : `until ${view.time(pauseUntil)}`,
    error === null ? null : `because: ${error}`,
    late ? 'it is late: no run has succeeded for too long' : null,
    nextFireAt === null ? null : `next fire ${view.time(nextFireAt)}`,
  ];
  return printable(parts.filter((part) => part !== null).join('; '));
}

function occurrenceText({ state, reason, run }: Explained['occurrences'][number], view: View): string {
  const became = run === null ? null : runText(run, view);
  const why = WORDS[`${state} ${reason ?? ''}`.trim()] ?? WORDS[state] ?? '';
  const words = state === 'excluded' ? `its day is excluded by ${reason ?? 'its exclude'}` : why;
  if (state === 'fired') return became ?? 'its run is not kept any more';
  const isHandedOff = became !== null && run?.status !== 'skipped';
  return isHandedOff ? `${words}; the record that stands for it: ${became}` : words;
}

/** By state, and by state and reason. */
const WORDS: Readonly<Record<string, string>> = {
  missed: 'it was too late when it was planned',
  'missed latest': 'no instance could plan it in time; catchUp "latest" makes one run for all of an outage',
  'missed skip': 'no instance could plan it in time; catchUp "skip" makes up for nothing',
  'missed limit': 'no instance could plan it in time, and there were more than catchUpLimit',
  'missed retention': 'it is older than records are kept',
  'missed unknown': 'no record explains it',
  skipped: 'it was skipped',
  'skipped overlap': 'an earlier run was still active, and overlap says to skip',
  'skipped request': 'a caller asked for it not to be made',
  paused: 'the schedule was paused',
  upcoming: 'it is still to come',
  'upcoming error': 'it is still to come, but the schedule cannot be planned at present',
};
