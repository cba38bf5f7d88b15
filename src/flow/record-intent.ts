/**
 * Guarantees: a fire's intent is durable before anything is sent, and the cursor moves on only together with it; a schedule that the
 *   database refuses is set aside and holds up no other.
 * Transaction: one statement for the batch, guarded by lock, lock time and version; a lost lock writes nothing (`fenced`). Where runs
 *   must not overlap, a fire is skipped on request, a schedule names calendars, or another transaction has a schedule's row: one
 *   transaction (`record/`).
 * If the process dies here: either nothing was written, or the runs are recorded. Any instance claims those without a claim;
 *   recovery takes over those that the dead instance had claimed.
 */
import { batchFaultOf } from '../postgres/errors.ts';
import { eachInTurn, inHalves } from '../runtime/loop/batch.ts';
import { reasonOf } from '../runtime/reason.ts';
import { setAsideIfLocked } from '../store/schedules/fire-locks.ts';
import type { Planned, PlannedSchedule, UnplannableSchedule } from './plan.ts';
import { type RecordAloneDeps, recordAlone } from './record/record-alone.ts';
import { recordUnderLocks } from './record/record-under-locks.ts';

export type RecordIntentDeps = RecordAloneDeps;

export async function recordIntents(
  deps: RecordIntentDeps,
  { planned, unplannable }: Planned,
  now: number,
): Promise<void> {
  const refused: UnplannableSchedule[] = [];
  const failure = await recordPlanned(deps, planned, refused).then(
    () => null,
    (error: unknown) => ({ error }),
  );
  // Done whatever happened to the others: a schedule that cannot be planned or recorded must not come back at once.
  const aside = [...unplannable, ...refused];
  if (aside.length > 0) await setAside(deps, aside, now);
  if (failure) throw failure.error;
}

async function recordPlanned(
  deps: RecordIntentDeps,
  planned: readonly PlannedSchedule[],
  refused: UnplannableSchedule[],
): Promise<void> {
  const sorted = [...planned].sort((a, b) => (a.schedule.uid < b.schedule.uid ? -1 : 1));
  // The requests to skip these fires are deleted in the same transaction.
  const isPlain = ({ schedule, calendars }: PlannedSchedule) =>
    schedule.overlap === 'allow' && schedule.skips.size === 0 && calendars === null;
  const recordingBy = (work: (batch: readonly PlannedSchedule[]) => Promise<void>) => ({
    work,
    faultOf: batchFaultOf,
    wasSetAside: ({ schedule }: PlannedSchedule) => schedule.planFailures > 0,
    setAside: ({ schedule }: PlannedSchedule, error: unknown) =>
      void refused.push({ schedule, error: reasonOf(error) }),
  });
  const alone = recordingBy((batch) => recordAlone(deps, batch));
  const underLocks = recordingBy((batch) => recordUnderLocks(deps, batch));
  await eachInTurn(
    [
      ...batchesOf(sorted.filter(isPlain)).map((batch) => ({ batch, recording: alone })),
      ...batchesOf(sorted.filter((one) => !isPlain(one))).map((batch) => ({
        batch,
        recording: underLocks,
      })),
    ],
    ({ batch, recording }) => inHalves(batch, recording),
  );
}

/** The most schedules for one statement, give or take one. */
const MAX_BATCH = 5_000;

function batchesOf(planned: readonly PlannedSchedule[]): PlannedSchedule[][] {
  const batches: PlannedSchedule[][] = [];
  let fires = MAX_BATCH;
  for (const one of planned) {
    if (fires >= MAX_BATCH) {
      batches.push([]);
      fires = 0;
    }
    batches.at(-1)?.push(one);
    fires += one.plan.fires.length;
  }
  return batches;
}

const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 15 * 60_000;

async function setAside(
  deps: RecordIntentDeps,
  unplannable: readonly UnplannableSchedule[],
  now: number,
): Promise<void> {
  const rows = unplannable.map(({ schedule, error }) => {
    const failures = schedule.planFailures + 1;
    const wait = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures - 1, 20));
    const message = error instanceof Error ? error.message : String(error);
    const { uid, version, lockedAt } = schedule;
    return { uid, version, lockedAt, error: message, failures, retryAt: now + wait, scheduleId: schedule.id };
  });
  await deps.database.run((db) => setAsideIfLocked(db, deps.lease.instanceId, rows));
  for (const { scheduleId, error, failures, retryAt } of rows) {
    deps.events.emit({ type: 'scheduleSetAside', scheduleId, error, failures, retryAt });
  }
}
