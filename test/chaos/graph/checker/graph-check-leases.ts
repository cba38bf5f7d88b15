import type { Delivery, GraphHistory, WorkerLifetime, Word } from './graph-history.ts';
import { type Traced, hasEnded, nameOf } from './graph-trace.ts';
import type { GraphReport } from './graph-violations.ts';

/** That an attempt is with one at a time, that only the present one counts, and that none follows without a reason. */
export function checkLeases(history: GraphHistory, traced: readonly Traced[], report: GraphReport): void {
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
        add(
          'afterItsEnd',
          `attempt ${attempt} arrived ${Math.round(at - seenEndedAt)} ms after it was seen ended`,
        );
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
    add(
      'twoWorkers',
      `attempt ${a.attempt} (${a.sender}) had ${ms} ms left when ${b.attempt} (${b.sender}) began`,
    );
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
