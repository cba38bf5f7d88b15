import type { WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';

type Attempt = WholeRun['attemptLog'][number];

/** One thing that happened to a run, or is happening. */
export interface Step {
  kind: 'wait' | 'attempt' | 'lookup' | 'work';
  from: number;
  to: number;
  /** A class that has a colour. */
  tone: 'good' | 'bad' | 'busy' | 'doubt' | 'calm';
  text: string;
  /** Of its bar, which has little room; a wait has none. */
  label: string | null;
  /** What the target or the network said. */
  detail: string | null;
  attempt?: Attempt;
}

/**
 * From the fire time to the end, or to `now` while it is open: each wait and each attempt, in the order of time. Of a run that is
 * still to come: since it was asked for.
 */
export function stepsOf(run: WholeRun, now: number): Step[] {
  const log = run.attemptLog.toSorted((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt));
  const steps: Step[] = [];
  let reached = Date.parse(isToCome(run, now) ? run.createdAt : run.scheduledFor);
  for (const [index, attempt] of log.entries()) {
    const from = Date.parse(attempt.startedAt);
    const to = Date.parse(attempt.finishedAt);
    if (from > reached) steps.push(wait(reached, from, index === 0 ? 'Waited for its first attempt' : 'Waited'));
    steps.push(attemptStep(attempt, { from, to, isLast: index === log.length - 1 && hasNoneLeft(run, attempt) }));
    reached = Math.max(reached, to);
  }
  const last = lastStep(run, reached, now);
  return last ? [...steps, last] : steps;
}

function isToCome({ finishedAt, scheduledFor }: WholeRun, now: number): boolean {
  return finishedAt === null && Date.parse(scheduledFor) > now;
}

function wait(from: number, to: number, text: string): Step {
  return { kind: 'wait', from, to, tone: 'calm', text, label: null, detail: null };
}

type Told = readonly [tone: Step['tone'], short: string, text: string];

const OUTCOMES: Record<Attempt['outcome'], Told> = {
  accepted: ['good', 'taken', 'the target took it'],
  acceptedLate: ['good', 'taken late', 'the target took it, but the run had ended otherwise by then'],
  rejected: ['bad', 'refused', 'the target refused it'],
  transient: ['doubt', 'failed', 'it did not work, and may later'],
  unknown: ['doubt', 'unknown', 'no answer came: it may have arrived'],
  blocked: ['bad', 'blocked', 'firelock may not call this address'],
};

const LOOKUPS = {
  arrived: 'The target was asked about an earlier attempt: it had arrived',
  notArrived: 'The target was asked about an earlier attempt, which had not arrived',
  unclear: 'The target was asked about an earlier attempt, and could not say',
};

/** It could have been tried again, and no attempt was left. */
function hasNoneLeft({ status, failures }: WholeRun, { outcome }: Attempt): boolean {
  return status === 'failed' && failures > 0 && (outcome === 'transient' || outcome === 'unknown');
}

interface Tried {
  from: number;
  to: number;
  isLast: boolean;
}

function attemptStep(attempt: Attempt, { from, to, isLast }: Tried): Step {
  const [usual, short, told] = OUTCOMES[attempt.outcome];
  const [tone, outcome] = isLast ? (['bad', 'the last one'] as const) : [usual, told];
  const said = attempt.lookup === undefined ? '' : `${LOOKUPS[attempt.lookup]}. `;
  const recovered = attempt.recovery ? ', taken over by recovery' : '';
  return {
    kind: attempt.lookup === undefined ? 'attempt' : 'lookup',
    ...{ from, to, tone, attempt, label: `${attempt.attempt}: ${short}` },
    text: `${said}Attempt ${attempt.attempt}${isLast ? ` of ${attempt.attempt}` : ''}${recovered}: ${outcome}`,
    detail: attempt.error
      ? sentence(attempt.error.message)
      : attempt.statusCode
        ? `Status ${attempt.statusCode}`
        : null,
  };
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`;
}

/** What came after the attempts that are over; null: nothing did. */
function lastStep(run: WholeRun, reached: number, now: number): Step | null {
  const step = (kind: Step['kind'], tone: Step['tone'], from: number, text: string): Step => ({
    ...{ kind, tone, text, from, to: Math.max(from, now), label: null, detail: null },
  });
  const { status, finishedAt, handedOffAt } = run;
  if (finishedAt !== null) {
    const to = Date.parse(finishedAt);
    const worked = handedOffAt !== null && run.attemptLog.length > 0;
    if (to <= reached) return null;
    return { ...step(worked ? 'work' : 'wait', 'calm', reached, ended(run, worked)), to };
  }
  if (status === 'waiting') return step('wait', 'calm', reached, waitsFor(run));
  if (status === 'running') return step('work', 'busy', reached, worksOn(run));
  if (run.claimedBy !== null) {
    const from = Math.max(reached, Date.parse(run.handoffStartedAt ?? run.claimedAt ?? run.updatedAt));
    const label = `${run.attempts}: under way`;
    return { ...step('attempt', 'busy', from, `Attempt ${run.attempts} is under way`), label };
  }
  return step('wait', 'calm', reached, isToCome(run, now) ? 'Waits for its moment' : awaits(run));
}

function awaits({ observed, queue }: WholeRun): string {
  if (observed) return 'Waits for a report of its job';
  return queue === null ? 'Waits for its attempt' : 'Waits for a worker';
}

function worksOn({ observed, workerId }: WholeRun): string {
  if (observed) return 'Its job has reported that it began';
  return workerId === null ? 'The target works on it' : 'A worker works on it';
}

function ended({ status }: WholeRun, worked: boolean): string {
  if (worked) return `The target worked on it, until it ended: ${status}`;
  return `Waited, until it ended: ${status}`;
}

function waitsFor({ dependsOn }: WholeRun): string {
  if (dependsOn.length > 0) return 'Waits for the runs that it depends on';
  return 'Waits: an earlier run of its schedule is under way, or maintenance is on';
}
