import type { RunAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';
import { durationText } from '../terminal/time-text.ts';

/** What happened to a run, in one sentence without a full stop. */
export function runText(run: RunAnswer, view: View): string {
  const { status, attempts, latenessMs, finishedAt, recoveries, workerId } = run;
  const parts = [
    run.reason === null ? status : `${status} (${REASONS[`${status} ${run.reason}`] ?? run.reason})`,
    attempts > 1 ? `${attempts} attempts` : null,
    recoveries > 0 ? `taken over ${recoveries === 1 ? 'once' : `${recoveries} times`}` : null,
    latenessMs !== null && latenessMs >= LATE_MS ? `${durationText(latenessMs)} late` : null,
    workerId === null ? null : `by worker ${workerId}`,
    coalescedText(run),
    isLongAfter(run) ? `ended ${view.time(finishedAt)}` : null,
    underWayText(run, (at) => view.time(at)) ?? nextAttemptText(run, view),
    errorText(run),
    unmetText(run),
  ];
  return parts.filter((part) => part !== null).join(', ');
}

/** Of a run that is being handed off, which its status does not say; null: it is not. */
export function underWayText(
  { status, claimedAt }: Pick<RunAnswer, 'status' | 'claimedAt'>,
  time: (at: string) => string,
): string | null {
  return status === 'pending' && claimedAt !== null ? `under way since ${time(claimedAt)}` : null;
}

function nextAttemptText({ status, nextAttemptAt }: RunAnswer, view: View): string | null {
  return status === 'pending' && nextAttemptAt !== null ? `next attempt ${view.time(nextAttemptAt)}` : null;
}

export function errorText({ error }: Pick<RunAnswer, 'error'>): string | null {
  return error === null ? null : `${error.kind}: ${error.message}`;
}

/** Of a run, or of a schedule; null: there are none. */
export function labelsText(labels: Readonly<Record<string, string>>): string | null {
  const all = Object.entries(labels).map(([key, value]) => `${key}:${value}`);
  return all.length === 0 ? null : all.join(', ');
}

function unmetText({ unmet, unmetReason }: RunAnswer): string | null {
  if (unmet.length === 0) return null;
  return `not as expected: ${unmet.map((bound) => UNMET[bound]).join(', ')}${unmetReason === null ? '' : ` (${unmetReason})`}`;
}

const UNMET: Readonly<Record<RunAnswer['unmet'][number], string>> = {
  start: 'it did not begin in time',
  finish: 'it did not end in time',
  tooFast: 'it ended too fast',
  result: 'its result',
};

/** Most runs end soon after they were due: that is not mentioned. */
function isLongAfter({ scheduledFor, finishedAt }: RunAnswer): boolean {
  return finishedAt !== null && Date.parse(finishedAt) - Date.parse(scheduledFor) > 60_000;
}

function coalescedText({ coalesced }: RunAnswer): string | null {
  return coalesced === 0 ? null : `for ${coalesced} other ${coalesced === 1 ? 'fire' : 'fires'} as well`;
}

/** A shorter time is not mentioned. */
const LATE_MS = 1000;

const REASONS: Readonly<Record<string, string>> = {
  'skipped missed': 'missed',
  'skipped limit': 'more than catchUpLimit',
  'skipped overlap': 'an earlier run was active',
  'skipped request': 'on request',
  'skipped expired': 'it had waited for expiresAfterSeconds',
  'abandoned age': 'too old to be taken over',
  'abandoned recoveries': 'taken over too often',
  'abandoned disabled': 'its schedule was paused',
  'abandoned deleted': 'its schedule was deleted',
  'cancelled request': 'on request',
  'cancelled replaced': 'a newer run took its place',
};
