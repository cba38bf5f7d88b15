import { nameOf } from './check-plan.ts';
import { type Arrival, type History, type Overlap, type RunRow, slackOf } from './history.ts';
import { type Timeline, grouped, spanOf } from './timeline.ts';
import { type Report, isoText } from './violations.ts';
import { disturbed, FREEZES } from './check-deliveries.ts';

/** An end is written in the time that an instance carries on of the database's; arrivals in the receiver's. */
const SAME_TIME_MS = 500;
/** Between the statement that records a run and the one that judges it, where nothing is in the way. */
const JUDGED_WITHIN_MS = 1_000;

/** A run, and when its first attempt was seen at the receiver; Infinity: never. */
interface Lived {
  run: RunRow;
  arrivedAt: number;
  endedAt: number;
}

/** Runs of a schedule that must not overlap did not; what was held back or cancelled for it had a reason. */
export function checkOverlap(history: History, timelines: Map<string, Timeline>, report: Report): void {
  const arrivals = new Map<string, number>();
  for (const { runId, at } of history.arrivals) {
    arrivals.set(runId, Math.min(at, arrivals.get(runId) ?? Infinity));
  }
  for (const [uid, runs] of grouped(history.dump.runs, (run) => run.scheduleUid)) {
    const overlap = overlapOf(timelines.get(uid), runs);
    if (overlap === 'allow') continue;
    const lived = runs.map((run): Lived => ({
      run,
      arrivedAt: arrivals.get(run.id) ?? Infinity,
      endedAt: run.finishedAt ?? Infinity,
    }));
    checkTogether(history, lived, report);
    checkJudged(history, overlap, lived, report);
    checkHeldBack(history, lived, report);
  }
}

/** The load never changes it. */
function overlapOf(timeline: Timeline | undefined, runs: readonly RunRow[]): Overlap {
  const spans = runs.map((run) => spanOf(timeline, run));
  return spans.find((span) => span !== undefined)?.definition.overlap ?? 'allow';
}

/** Both were seen by the receiver, the second one while the first was not finished. */
function checkTogether(history: History, lived: readonly Lived[], report: Report): void {
  // What arrives after its run has ended comes from a sender that had been frozen.
  const seen = lived.filter(({ arrivedAt, endedAt }) => arrivedAt <= endedAt);
  seen.sort((a, b) => a.arrivedAt - b.arrivedAt);
  for (const [index, first] of seen.entries()) {
    for (const second of seen.slice(index + 1)) {
      if (second.arrivedAt >= first.endedAt - SAME_TIME_MS) break;
      const slack = slackOf(history, second.arrivedAt, SAME_TIME_MS);
      if (second.arrivedAt >= first.endedAt - SAME_TIME_MS - slack) continue;
      const ended = isoText(first.run.finishedAt);
      report.add(
        'overlap',
        `${nameOf(second.run)} arrived at ${isoText(second.arrivedAt)}; ${nameOf(first.run)} ended at ${ended}`,
      );
    }
  }
}

/** What was recorded while another one was under way: how many of those may ever run. */
const MAY_FOLLOW: Record<Overlap, number> = { allow: Infinity, skip: 0, queue: 1, replace: 0 };

/** Only in quiet times: a disturbed instance may take long between recording a run and judging it. */
function checkJudged(history: History, overlap: Overlap, lived: readonly Lived[], report: Report): void {
  const kept = lived.filter(({ run }) => run.status !== 'skipped' && run.reason !== 'replaced');
  for (const { run: active, arrivedAt, endedAt } of lived) {
    const during = kept.filter(
      ({ run }) => run.id !== active.id && run.createdAt > arrivedAt && judgedBy(history, run) < endedAt,
    );
    if (during.length <= MAY_FOLLOW[overlap] || isDisturbed(history, arrivedAt, endedAt)) continue;
    const names = during.map(({ run }) => nameOf(run)).join(', ');
    const text = `under way from ${isoText(arrivedAt)} to ${isoText(active.finishedAt)}`;
    report.add('overlap', `${nameOf(active)}, ${text}: meanwhile ${names} were kept, with ${overlap}`);
  }
}

function judgedBy(history: History, { createdAt }: RunRow): number {
  return createdAt + JUDGED_WITHIN_MS + slackOf(history, createdAt, JUDGED_WITHIN_MS);
}

function isDisturbed({ disturbances }: History, from: number, to: number): boolean {
  return disturbances.some((one) => one.from <= to && one.to + JUDGED_WITHIN_MS >= from);
}

/** While one of these lasts, what an instance has sent may not get to the database, and its transaction stays open. */
const HOLDS_UP_COMMITS = new Set(['hang', 'mute', 'freeze', 'shortFreeze', 'block']);

/** Until its end is committed a run is active, however long ago it was. The rows say when it was written. */
function writtenAt({ disturbances }: History, { run, endedAt }: Lived): number {
  const written = Math.max(endedAt, run.updatedAt, run.endedAt ?? Infinity);
  const holding = disturbances.filter(
    ({ kind, from, to }) => HOLDS_UP_COMMITS.has(kind) && from <= written + SAME_TIME_MS && to >= written,
  );
  return Math.max(written, ...holding.map(({ to }) => to));
}

function checkHeldBack(history: History, lived: readonly Lived[], report: Report): void {
  for (const { run, endedAt } of lived) {
    const others = lived.filter((other) => other.run.id !== run.id);
    if (run.status === 'skipped' && run.reason === 'overlap') {
      const sameTimeMs = SAME_TIME_MS + slackOf(history, run.createdAt, SAME_TIME_MS);
      const active = others.some(
        (other) =>
          other.run.status !== 'skipped' &&
          other.run.createdAt <= endedAt + sameTimeMs &&
          writtenAt(history, other) >= run.createdAt - sameTimeMs,
      );
      if (!active) report.add('overlap', `${nameOf(run)} is skipped, and nothing was active`);
    }
    if (run.status === 'cancelled' && run.reason === 'replaced') {
      const newer = others.some(
        (other) => other.run.createdAt >= run.createdAt && other.run.createdAt <= endedAt + SAME_TIME_MS,
      );
      if (!newer) report.add('overlap', `${nameOf(run)} is replaced, by none that came later`);
    }
  }
}

/** When a connection is reset, its receiver may see so much later than the sender; an answer is out before the sender has it. */
const RESET_WITHIN_MS = 100;

/** While this arrival was under way, by what is certain: its run had a place of its limit all the time. */
interface Taken {
  runId: string;
  from: number;
  to: number;
}

/**
 * Of the runs of one limit never more than it allows were under way at once, as the receiver saw them. A run counts once, however many
 * senders it has had. An attempt is over when it was answered, given up or out of time, or when its run had ended (deleted, say).
 */
export function checkLimits(history: History, report: Report): void {
  const limitOf = new Map(
    history.edits.flatMap(({ marker, definition }) =>
      marker === null || definition === null ? [] : [[marker, definition]],
    ),
  );
  for (const [limit, most] of Object.entries(history.limits)) {
    const taken = takenBy(history, ({ marker }) => limitOf.get(marker)?.limit === limit, limitOf);
    for (const { from } of taken) {
      const together = new Set(taken.filter((one) => one.from <= from && from < one.to).map(({ runId }) => runId));
      if (together.size > most)
        report.add(
          'limit',
          `${together.size} runs of ${limit} (${most}) at ${isoText(from)}: ${[...together].join(', ')}`,
        );
    }
  }
}

function takenBy(
  history: History,
  isOfLimit: (arrival: Arrival) => boolean,
  definitions: ReadonlyMap<string, { timeoutSeconds: number }>,
): Taken[] {
  const ends = new Map(history.dump.runs.map(({ id, endedAt }) => [id, endedAt ?? Infinity]));
  const givenUp = new Map(
    history.dump.attempts.map(({ runId, attempt, finishedAt }) => [`${runId}/${attempt}`, finishedAt]),
  );
  return history.arrivals.filter(isOfLimit).flatMap((arrival): Taken[] => {
    const { runId, attempt, at, answeredAt, delivered, sender, marker } = arrival;
    // An instance that was frozen between its last look at the lease and the first byte sends what others have sent meanwhile.
    if (disturbed(history, sender, at - 1_000, at, FREEZES)) return [];
    const seen = delivered ? answeredAt : answeredAt - RESET_WITHIN_MS - slackOf(history, answeredAt, RESET_WITHIN_MS);
    const outOfTime = at + (definitions.get(marker)?.timeoutSeconds ?? 0) * 1_000 - RESET_WITHIN_MS;
    const to = Math.min(seen, outOfTime, ends.get(runId) ?? at, givenUp.get(`${runId}/${attempt}`) ?? Infinity);
    return to > at ? [{ runId, from: at, to }] : [];
  });
}
