import {
  type Arrival,
  type AttemptRow,
  type Disturbance,
  type History,
  type Lookup,
  type RunRow,
  senderOf,
  slackOf,
} from './history.ts';
import { nameOf } from './check-plan.ts';
import { type Timeline, grouped, isOfCommands, spanOf } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

/** What a delivery says of how it came about. */
export interface Repeats {
  explained: number;
  unexplained: number;
}

interface Context {
  history: History;
  timelines: Map<string, Timeline>;
  lookups: Map<string, Lookup[]>;
  attempts: Map<string, AttemptRow>;
  report: Report;
}

/** Each arrival belongs to a run and says what that run says; each repeat has a cause; what succeeded was acknowledged. */
export function checkDeliveries(history: History, timelines: Map<string, Timeline>, report: Report): Repeats {
  const repeats: Repeats = { explained: 0, unexplained: 0 };
  const lookups = grouped(history.lookups, ({ runId }) => runId);
  const attempts = new Map(history.dump.attempts.map((row) => [`${row.runId}/${row.attempt}`, row]));
  const context = { history, timelines, lookups, attempts, report };
  const runs = new Map(history.dump.runs.map((run) => [run.id, run]));
  const arrivals = grouped(history.arrivals, ({ runId }) => runId);
  for (const [runId, delivered] of arrivals) {
    const run = runs.get(runId);
    if (!run) {
      for (const arrival of delivered) report.add('phantom', `${textOf(arrival)} is of no run`);
      continue;
    }
    for (const arrival of delivered) checkArrival(context, run, arrival);
    checkRepeats(context, run, delivered, repeats);
  }
  for (const run of runs.values())
    if (!isOfCommands(timelines.get(run.scheduleUid))) checkEnd(context, run, arrivals.get(run.id) ?? []);
  return repeats;
}

/** Its own clock, the receiver's and the database's are one; what is left is when each of them looks at it. */
const EARLY_MS = 50;
/** How far apart the database's clock may be from what an instance carries on of it. */
const LATE_MS = 1_000;
/** The longest time-out, the longest wait for a slot before a claim is looked at again, and some room. */
const STILL_UNDER_WAY_MS = 5_000;

function checkArrival(context: Context, run: RunRow, arrival: Arrival): void {
  const { history, timelines, report } = context;
  checkInTime(context, arrival);
  const timeline = timelines.get(run.scheduleUid);
  const marker = spanOf(timeline, run)?.marker;
  if (arrival.fault !== null) report.add('wrongBody', `${textOf(arrival)}: ${arrival.fault}`);
  else if (arrival.scheduleId !== run.scheduleId || arrival.scheduledFor !== run.scheduledFor) {
    report.add('wrongBody', `${textOf(arrival)} belongs to ${nameOf(run)}`);
  } else if (marker !== undefined && arrival.marker !== marker) {
    report.add('wrongBody', `${textOf(arrival)} has the payload of another version than ${run.scheduleVersion}`);
  }
  if (arrival.at < run.scheduledFor - EARLY_MS) report.add('early', textOf(arrival));
  if (arrival.at < run.createdAt - EARLY_MS) {
    report.add('phantom', `${textOf(arrival)} came before its run was recorded at ${isoText(run.createdAt)}`);
  }
  if (arrival.attempt > run.attempts) {
    report.add('conservation', `${textOf(arrival)}: the run counts ${run.attempts} attempts`);
  }
  const deletedAt = timeline?.deletedAt ?? null;
  if (deletedAt === null) return;
  const latest = deletedAt + STILL_UNDER_WAY_MS + slackOf(history, deletedAt, STILL_UNDER_WAY_MS);
  if (arrival.at > latest) {
    const frozen = disturbed(history, arrival.sender, deletedAt, arrival.at, FREEZES);
    if (!frozen) report.add('phantom', `${textOf(arrival)}: deleted at ${isoText(deletedAt)}`);
  }
}

/** An instance that gives an attempt up resets its connection: nothing of it may arrive after that. */
function checkInTime({ history, attempts, report }: Context, arrival: Arrival): void {
  const logged = attempts.get(`${arrival.runId}/${arrival.attempt}`);
  if (!logged) return;
  const { finishedAt } = logged;
  if (arrival.at <= finishedAt + LATE_MS + slackOf(history, finishedAt, LATE_MS)) return;
  if (disturbed(history, arrival.sender, logged.startedAt - LATE_MS, arrival.at, FREEZES)) return;
  report.add('arrivedLate', `${textOf(arrival)}: given up at ${isoText(logged.finishedAt)}`);
}

function checkRepeats(context: Context, run: RunRow, arrivals: Arrival[], repeats: Repeats): void {
  const { timelines, lookups, report } = context;
  const definition = spanOf(timelines.get(run.scheduleUid), run)?.definition;
  for (const [index, arrival] of arrivals.entries()) {
    const same = arrivals.slice(0, index).filter(({ attempt }) => attempt === arrival.attempt);
    if (same.length > 0 && !isSentOnceMore(same, arrival, definition?.delivery))
      report.add('sameAttemptTwice', [...same, arrival].map(textOf).join(', then '));
    const before = arrivals[index - 1];
    if (!before) continue;
    const text = `${textOf(before)}, then ${textOf(arrival)}`;
    if (definition?.delivery === 'atMostOnce') {
      if (!wasRefused(before, arrival, lookups.get(run.id) ?? [])) report.add('atMostOnceRepeat', text);
    } else if (isExplained(context, run, before, arrival)) repeats.explained += 1;
    else {
      repeats.unexplained += 1;
      report.add('unexplainedRepeat', text);
    }
  }
}

/** By its sender, as its kept connection ended before any byte of an answer: once, and not at most once. */
function isSentOnceMore(same: readonly Arrival[], arrival: Arrival, delivery: string | undefined): boolean {
  const [first, ...more] = same;
  const wasCut = first?.answer === 'lost' || first?.delivered === false;
  // Of a connection that had gone before it was taken, nobody knows whose it was.
  const isSame = first?.sender === arrival.sender || arrival.sender === senderOf('');
  return more.length === 0 && wasCut && isSame && delivery !== 'atMostOnce';
}

/** The receiver said itself that it did not take it: by its answer, or when it was asked. */
function wasRefused(before: Arrival, arrival: Arrival, lookups: readonly Lookup[]): boolean {
  if (before.answer === 'unavailable' && before.delivered) return true;
  if (before.answer !== 'unavailable' && before.answer !== 'error') return false;
  return lookups.some(({ at, statusCode }) => statusCode === 404 && at >= before.at && at <= arrival.at);
}

/** Settling an acknowledged delivery takes far less, where nothing is in the way. */
const SETTLED_WITHIN_MS = 3_000;

function settledBy(history: History, { answeredAt }: Arrival): number {
  return answeredAt + SETTLED_WITHIN_MS + slackOf(history, answeredAt, SETTLED_WITHIN_MS);
}

function isExplained(context: Context, run: RunRow, before: Arrival, arrival: Arrival): boolean {
  if (!wasHeard(context, run, before)) return true;
  const { history } = context;
  return (
    disturbed(history, before.sender, before.at - 1_000, settledBy(history, before)) ||
    // An instance that was frozen between its last look at the lease and the first byte sends what others have sent meanwhile.
    disturbed(history, arrival.sender, arrival.at - SETTLED_WITHIN_MS, arrival.at, FREEZES)
  );
}

function isAcknowledged({ answer, delivered }: Arrival): boolean {
  return delivered && (answer === 'ok' || answer === 'slow');
}

/** It was acknowledged in time; on a busy machine a slow answer may come when its attempt has been given up. */
function wasHeard({ history, timelines, attempts }: Context, run: RunRow, arrival: Arrival): boolean {
  if (!isAcknowledged(arrival)) return false;
  const logged = attempts.get(`${run.id}/${arrival.attempt}`);
  const definition = spanOf(timelines.get(run.scheduleUid), run)?.definition;
  if (!logged || !definition) return true;
  const { answeredAt } = arrival;
  const timeOutAt = logged.startedAt + definition.timeoutSeconds * 1_000;
  return logged.error?.kind !== 'timeout' || answeredAt + slackOf(history, answeredAt, LATE_MS) < timeOutAt;
}

export const FREEZES: ReadonlySet<string> = new Set(['freeze', 'shortFreeze', 'block']);
/** Time-outs of statements and the waits between tries go on for a while after the way is free again. */
const TAIL_MS = 8_000;
const NO_TAIL = new Set(['kill', 'killAll', 'terminate', 'ended']);
/** Too short to cost anybody its lease: outcomes wait in memory and are written when the way is free again. */
const NO_EXCUSE = new Set(['cut', 'loseAnswers', 'terminateBackends', 'delay']);

export function disturbed(
  { disturbances }: History,
  sender: string,
  from: number,
  to: number,
  kinds?: ReadonlySet<string>,
): boolean {
  const [name] = sender.split('.');
  return disturbances.some((disturbance: Disturbance) => {
    if (disturbance.instance !== '*' && disturbance.instance !== name) return false;
    if (kinds ? !kinds.has(disturbance.kind) : NO_EXCUSE.has(disturbance.kind)) return false;
    const end = disturbance.to + (NO_TAIL.has(disturbance.kind) ? 0 : TAIL_MS);
    return disturbance.from <= to && end >= from;
  });
}

function checkEnd(context: Context, run: RunRow, arrivals: readonly Arrival[]): void {
  const { history, timelines, lookups, report } = context;
  const acknowledged = arrivals.filter(isAcknowledged);
  if (run.status === 'succeeded') {
    const found = (lookups.get(run.id) ?? []).some(({ statusCode }) => statusCode === 200);
    if (acknowledged.length === 0 && !found) report.add('falseAccept', nameOf(run));
    return;
  }
  if (run.status === 'pending' || run.status === 'waiting') return;
  if (run.status === 'skipped' && arrivals[0]) report.add('phantom', `${textOf(arrivals[0])} is skipped`);
  const wronged = acknowledged.find(
    (arrival) =>
      wasHeard(context, run, arrival) &&
      !disturbed(history, arrival.sender, arrival.at - 1_000, settledBy(history, arrival)),
  );
  if (wronged && run.reason !== 'deleted' && run.reason !== 'replaced') {
    report.add('missedAccept', `${textOf(wronged)}: the run is ${run.status}`);
  }
  const fault = faultOfEnd(history, timelines.get(run.scheduleUid), run, arrivals);
  if (fault !== null) report.add('wrongEnd', `${nameOf(run)} is ${run.status} ${run.reason ?? ''}: ${fault}`);
}

/** Why this terminal status is not one that it could have; null where it could. */
export function faultOfEnd(
  { settings, dump }: History,
  timeline: Timeline | undefined,
  run: RunRow,
  arrivals: readonly Arrival[],
): string | null {
  const definition = spanOf(timeline, run)?.definition;
  const isAtMostOnce = definition?.delivery === 'atMostOnce';
  switch (run.status) {
    case 'failed':
      if (run.failures >= (definition?.maxAttempts ?? 0)) return null;
      if (isAtMostOnce && arrivals.some(({ answer }) => answer === 'error')) return null;
      return `${run.failures} failures`;
    case 'unknown':
      return isAtMostOnce ? null : 'it is to be delivered at least once';
    case 'abandoned':
      if (run.reason === 'deleted' && typeof timeline?.deletedAt === 'number') return null;
      if (run.reason === 'disabled' && timeline?.spans.some((span) => !span.definition.enabled)) return null;
      if (run.reason === 'recoveries' && run.recoveries >= settings.maxRecoveries) return null;
      if (run.reason === 'age' && dump.at - run.scheduledFor > settings.maxRecoveryAgeSeconds * 1000) return null;
      return 'nothing of the kind happened';
    case 'skipped':
      if (run.reason === 'overlap' && definition?.overlap !== 'allow') return null;
      if (run.reason === 'missed' && definition?.catchUp === 'skip') return null;
      return run.reason === 'limit' && definition?.catchUp === 'all' ? null : 'nothing here leads to that';
    case 'cancelled':
      if (run.reason === 'replaced' && definition?.overlap === 'replace') return null;
      return 'nothing here leads to that';
    default:
      return 'nothing here leads to that';
  }
}

function textOf(arrival: Arrival): string {
  const { scheduleId, scheduledFor, attempt, at, sender, answer, delivered, runId } = arrival;
  const answered = `${answer}${delivered ? '' : ' (not received)'}`;
  return `${scheduleId}@${isoText(scheduledFor)} (${runId}) attempt ${attempt} from ${sender} at ${isoText(at)}, answered ${answered}`;
}
