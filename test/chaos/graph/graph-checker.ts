/**
 * Says from a graph campaign's history which promises were broken. What it expects it computes by itself, from what the client asked for
 * and what receiver, workers and observer saw: nothing here imports the daemon's code.
 */
import { createReport, foundIn } from '../checker/violations.ts';
import {
  type Asked,
  type Delivery,
  type FinalRow,
  type GraphHistory,
  type GraphReport,
  type Word,
  type WorkerLifetime,
  GRAPH_VIOLATIONS,
} from './graph-history.ts';

export interface GraphVerdict {
  ok: boolean;
  violations: GraphReport['found'];
}

export function checkGraph(history: GraphHistory): GraphVerdict {
  const report = createReport(GRAPH_VIOLATIONS);
  const traced = trace(history, report);
  checkEnds(history, traced, report);
  checkOrder(traced, report);
  checkLeases(history, traced, report);
  if (history.releasedByBackstop > 0) report.add('backstop', 'see the logs', history.releasedByBackstop);
  if (history.uncounted > 0) report.add('uncounted', 'edges in the database', history.uncounted);
  for (const refusal of history.refusals) report.add('refusal', refusal);
  for (const instance of history.unready) report.add('liveness', instance);
  return { ok: foundIn(report.found).ok, violations: report.found };
}

/** All there is of one run. */
export interface Traced {
  asked: Asked;
  row: FinalRow;
  /** In the order of time, both. */
  deliveries: Delivery[];
  words: Word[];
  dependsOn: Traced[];
  /** It may not start, as one that it needs did not succeed. */
  inVain: boolean;
}

const TERMINAL = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'];

function hasEnded({ row }: Pick<Traced, 'row'>): boolean {
  return TERMINAL.includes(row.status);
}

/** For the examples. */
function nameOf({ asked, row }: Traced): string {
  return `${asked.ref} (${row.id})`;
}

/**
 * Puts together what belongs together; what belongs to nothing is a phantom, what is not there is lost. A run that a call without an answer
 * asked for may be there or not; where it is, it is one like the others.
 */
export function trace(history: GraphHistory, report: GraphReport): Traced[] {
  const rows = new Map(history.rows.map((row) => [row.id, row]));
  const byKey = new Map(history.rows.map((row) => [row.key, row]));
  const deliveries = Map.groupBy(history.deliveries, ({ runId }) => runId);
  const words = Map.groupBy(history.words, ({ runId }) => runId);
  const traced = new Map<string, Traced>();
  for (const asked of history.asked) {
    const row = asked.outcome === 'unknown' ? byKey.get(asked.ref) : rows.get(asked.id ?? '');
    if (row?.key !== asked.ref) {
      if (asked.outcome === 'accepted') report.add('lost', `${asked.ref} (${asked.id ?? 'no id'})`);
      continue;
    }
    rows.delete(row.id);
    traced.set(asked.ref, {
      asked,
      row,
      deliveries: (deliveries.get(row.id) ?? []).sort((a, b) => a.at - b.at),
      words: (words.get(row.id) ?? []).sort((a, b) => a.sentAt - b.sentAt),
      dependsOn: [],
      inVain: false,
    });
    deliveries.delete(row.id);
  }
  checkWhole(history.asked, traced, report);
  for (const { id, key } of rows.values()) report.add('phantom', `row ${id}, key ${key ?? 'none'}`);
  for (const id of deliveries.keys()) report.add('phantom', `a delivery of ${id}`);
  // Only now: a batch may name what comes after.
  for (const one of traced.values()) {
    one.dependsOn = one.asked.dependsOn.flatMap((ref) => traced.get(ref) ?? []);
    one.inVain =
      one.asked.onDependencyFailure === 'fail' &&
      one.dependsOn.some((other) => hasEnded(other) && other.row.status !== 'succeeded');
  }
  return [...traced.values()];
}

/** Of a call without an answer too, all that it asked for is there, or nothing. */
function checkWhole(asked: readonly Asked[], traced: ReadonlyMap<string, Traced>, report: GraphReport): void {
  const unknown = asked.filter(({ outcome }) => outcome === 'unknown');
  for (const [call, runs] of Map.groupBy(unknown, (one) => one.call)) {
    const missing = runs.filter(({ ref }) => !traced.has(ref));
    if (missing.length === 0 || missing.length === runs.length) continue;
    report.add('lost', `of call ${call}: ${missing.map(({ ref }) => ref).join(', ')}, and others of it are there`);
  }
}

/** That every run ends, once, and as it was said. */
function checkEnds(history: GraphHistory, traced: readonly Traced[], report: GraphReport): void {
  const seen = Map.groupBy(history.sightings, ({ runId }) => runId);
  for (const one of traced) {
    const { row } = one;
    const statuses = new Set([...(seen.get(row.id) ?? []).map(({ status }) => status), row.status]);
    if (statuses.size > 1) report.add('endedTwice', `${nameOf(one)}: ${[...statuses].join(', ')}`);
    if (!hasEnded(one)) {
      report.add('stuck', `${nameOf(one)} is ${row.status} after ${row.attempts} attempts`);
    } else if (one.inVain) checkFailedForIt(one, report);
    else checkEnd(one, report);
  }
}

function checkFailedForIt(one: Traced, report: GraphReport): void {
  const { row, deliveries } = one;
  if (deliveries.length > 0) report.add('startedInVain', `${nameOf(one)} was started`);
  else if (row.status !== 'failed' || row.errorKind !== 'dependency') {
    report.add('startedInVain', `${nameOf(one)} is ${row.status}, ${row.errorKind ?? 'no error'}`);
  }
}

function checkEnd(one: Traced, report: GraphReport): void {
  const { asked, row } = one;
  if (row.status !== asked.fate || row.errorKind === 'dependency') {
    const error = row.errorKind ?? 'no error';
    report.add('wrongEnd', `${nameOf(one)} is ${row.status}, ${error}, and should be ${asked.fate}`);
  } else if (saidToEndAt(one) === Infinity) {
    report.add('wrongEnd', `${nameOf(one)} is ${row.status}, and no answer said so`);
  }
}

/**
 * The earliest moment at which each run can have come to the end that it has, by those who knew: when the receiver began to answer so,
 * when it or a worker began to say so; where it failed for another, when that one can have ended. Infinity: no answer ever said so.
 */
export function endsNotBefore(traced: readonly Traced[]): (one: Traced) => number {
  const ends = new Map<Traced, number>();
  const endOf = (one: Traced): number => {
    const known = ends.get(one);
    if (known !== undefined) return known;
    const failed = one.dependsOn.filter(({ row }) => row.status !== 'succeeded');
    const end = one.inVain ? earliest(failed.map(endOf)) : saidToEndAt(one);
    ends.set(one, end);
    return end;
  };
  for (const one of traced) endOf(one);
  return endOf;
}

/** What was not answered, or in vain, may have been heard all the same. */
function saidToEndAt({ asked, row, deliveries, words }: Traced): number {
  const said = words.filter(({ say, statusCode }) => say === row.status && mayBeHeard(statusCode));
  const answered = deliveries.flatMap(({ answer }) =>
    answer && asked.kind === 'http' && meaning(answer.statusCode) === row.status ? [answer.at] : [],
  );
  return earliest([...said.map(({ sentAt }) => sentAt), ...answered]);
}

function mayBeHeard(statusCode: number | null): boolean {
  return statusCode === null || statusCode < 300 || statusCode >= 500;
}

function meaning(statusCode: number): string {
  if (statusCode < 300) return 'succeeded';
  return statusCode === 503 ? 'pending' : 'failed';
}

function earliest(moments: readonly number[]): number {
  return moments.reduce((first, moment) => Math.min(first, moment), Infinity);
}

/** That nothing starts before what it depends on has ended, and that it is told how. */
function checkOrder(traced: readonly Traced[], report: GraphReport): void {
  const endOf = endsNotBefore(traced);
  for (const one of traced) {
    const [first] = one.deliveries;
    if (!first) continue;
    for (const dependency of one.dependsOn) {
      const end = endOf(dependency);
      if (first.at >= end) continue;
      const early = Number.isFinite(end) ? `${Math.round(end - first.at)} ms before` : 'without';
      report.add('tooEarly', `${nameOf(one)} started ${early} the end of ${nameOf(dependency)}`);
    }
    for (const delivery of one.deliveries) {
      const wrong = wrongOutcome(one, delivery);
      if (wrong !== null) report.add('wrongOutcome', `${nameOf(one)}, attempt ${delivery.attempt}: ${wrong}`);
    }
  }
}

/** What is wrong with what an attempt was told; the ends it is told of do not change any more. */
function wrongOutcome({ dependsOn }: Traced, { outcomes }: Delivery): string | null {
  if (outcomes.length !== dependsOn.length) return `of ${outcomes.length} dependencies, not ${dependsOn.length}`;
  const rows = new Map(dependsOn.map(({ row }) => [row.id, row]));
  for (const one of outcomes) {
    const row = rows.get(one.runId);
    rows.delete(one.runId);
    if (!row) return `of ${one.runId}, on which it does not depend, or twice`;
    const difference = differenceOf(row, one);
    if (difference !== null) return `of ${one.runId}: ${difference}`;
  }
  return null;
}

function differenceOf(row: FinalRow, shown: Pick<FinalRow, 'status' | 'errorKind' | 'body'>): string | null {
  for (const field of ['status', 'errorKind', 'body'] as const) {
    if (row[field] !== shown[field]) return `${field} ${String(shown[field])}, not ${String(row[field])}`;
  }
  return null;
}

/** That an attempt is with one at a time, that only the present one counts, and that none follows without a reason. */
function checkLeases(history: GraphHistory, traced: readonly Traced[], report: GraphReport): void {
  const lives = new Map(history.lives.map((life) => [life.sender, life]));
  const seen = new Map(history.sightings.map(({ runId, at }) => [runId, at]));
  for (const one of traced) {
    const attempts = one.deliveries.map((delivery) => ({ delivery, words: wordsOf(one, delivery) }));
    const seenEndedAt = seen.get(one.row.id) ?? Infinity;
    const add: Add = (violation, said) => report.add(violation, `${nameOf(one)}: ${said}`);
    attempts.forEach((attempt, index) => {
      checkAttempt(attempt, add);
      const next = attempts.slice(index + 1);
      for (const later of next) checkFollowing(attempt, later, add);
      const [repeat] = next;
      if (repeat && !mayRepeat(one, attempt.delivery, repeat.delivery, lives)) {
        add(
          'unexplainedRepeat',
          `attempt ${repeat.delivery.attempt} after an acknowledged ${attempt.delivery.attempt}`,
        );
      }
    });
    checkWords(one, add);
    for (const { delivery } of attempts) {
      const { at, attempt } = delivery;
      if (at > seenEndedAt && hasEnded(one) && !isReplaced(one, lives))
        add('afterItsEnd', `attempt ${attempt} arrived ${Math.round(at - seenEndedAt)} ms after it was seen ended`);
    }
  }
}

type Add = (violation: Parameters<GraphReport['add']>[0], said: string) => void;

interface Attempt {
  delivery: Delivery;
  words: Word[];
}

function wordsOf({ words }: Traced, { attempt }: Delivery): Word[] {
  return words.filter((word) => word.attempt === attempt);
}

/** A worker's word under its lease is taken: no other worker can have taken the run from it. */
function checkAttempt({ delivery, words }: Attempt, add: Add): void {
  if (!delivery.lease) return;
  words.forEach((word, index) => {
    const before = words.slice(0, index);
    if (word.statusCode !== 409 && word.statusCode !== 404) return;
    // Its end may have been heard already, by a call that was not answered.
    if (before.some(({ say }) => say !== 'alive')) return;
    if (word.endedAt < heldUntil(delivery, before)) {
      add('leaseBroken', `attempt ${delivery.attempt} (${delivery.sender}), answered ${word.statusCode}`);
    }
  });
}

function checkFollowing(attempt: Attempt, later: Attempt, add: Add): void {
  const [a, b] = [attempt.delivery, later.delivery];
  if (a.attempt === b.attempt) add('sameAttemptTwice', `attempt ${a.attempt}`);
  else if (a.lease && b.lease && b.at < heldUntil(a, attempt.words)) {
    const ms = Math.round(heldUntil(a, attempt.words) - b.at);
    add('twoWorkers', `attempt ${a.attempt} (${a.sender}) had ${ms} ms left when ${b.attempt} (${b.sender}) began`);
  }
}

/**
 * Until when a worker surely had the run: by the moment of its asking and of each sign of life that was acknowledged; not longer than
 * until it began to say how the run ended, or was refused.
 */
function heldUntil({ lease }: Delivery, words: readonly Word[]): number {
  if (!lease) return -Infinity;
  let until = lease.askedAt + lease.seconds * 1000;
  for (const { say, sentAt, statusCode, isHeld } of words) {
    if (isHeld && statusCode === 200) until = Math.max(until, sentAt + lease.seconds * 1000);
    else if (say !== 'alive' || (statusCode !== null && statusCode < 500)) return Math.min(until, sentAt);
  }
  return until;
}

/** Only the word of the present attempt ends a run, once. */
function checkWords({ words, deliveries }: Traced, add: Add): void {
  const taken = words.filter(({ say, statusCode }) => say !== 'alive' && statusCode === 200);
  const attempts = new Set(taken.map(({ attempt, say }) => `${attempt} ${say}`));
  if (attempts.size > 1) add('staleWord', `the words of several were taken: ${[...attempts].join(', ')}`);
  for (const { attempt, sentAt, endedAt } of taken) {
    const later = deliveries.find((delivery) => delivery.attempt > attempt);
    if (!later) continue;
    if (later.at < sentAt) add('staleWord', `of attempt ${attempt}, while ${later.attempt} was there`);
    else if (later.at > endedAt) add('afterItsEnd', `attempt ${later.attempt}, after the word of ${attempt}`);
  }
}

/** How long a target has to call back. */
export const COMPLETION_TIMEOUT_SECONDS = 2;

/** Whether another attempt may follow one whose answer was sent: its sender may not have heard it, or not have lived to write it down. */
function mayRepeat(
  { asked }: Traced,
  { sender, answer, lease }: Delivery,
  next: Delivery,
  lives: ReadonlyMap<string, WorkerLifetime>,
): boolean {
  if (lease || !answer?.sent || answer.statusCode >= 300) return true;
  const life = lives.get(sender);
  if (!life || life.replaced || life.to <= next.at) return true;
  return asked.kind === 'callback' && next.at >= answer.at + COMPLETION_TIMEOUT_SECONDS * 1000;
}

/** A sender that was declared dead while it lived may have sent what others had already seen to. */
function isReplaced({ deliveries }: Traced, lives: ReadonlyMap<string, WorkerLifetime>): boolean {
  return deliveries.some(({ sender }) => lives.get(sender)?.replaced === true);
}
