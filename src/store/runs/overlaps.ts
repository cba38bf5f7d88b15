import { sql } from 'drizzle-orm';
import { endRun, releaseRun } from '../../core/runs/transitions.ts';
import { type OverlapVerdict, type OverlappingRun, judgeOverlap } from '../../core/schedules/overlap.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { Instant } from '../../core/instant.ts';
import type { Overlap } from '../../core/schedules/schedule.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Work } from '../../runtime/loop/wake.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import { writeOverlapEffects } from '../effects/insert-effects.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { queueOfLane } from '../queues/queue-lanes.ts';
import { type InstantText, rowsOf, toInstant } from '../../postgres/sql/rows.ts';
import { lockOpenRuns } from './lock-runs.ts';
import { type RunChange, saveLockedRuns } from './save-runs.ts';

/** What became of the runs of some schedules that must not overlap. */
export interface JudgedOverlaps {
  /** Waiting runs that are pending now, and whether workers may pull some of them. */
  started: number;
  toPull: boolean;
  /** Runs with a limit started, or gave their place up. */
  toAdmit: boolean;
  skipped: number;
  /** Runs that gave way to a newer one. */
  replaced: number;
  /** Schedules of which another transaction has a run locked: they are to be judged again. */
  passedOver: string[];
  effects: number;
}

/**
 * Decides which waiting runs of these schedules start, go on waiting or are skipped, and which give way (core/schedules/overlap.ts). The
 * caller holds the schedules' row locks, taken by an earlier statement of this transaction. No row of a run is waited for: a schedule
 * of which another transaction has a run locked is left as it is.
 */
export async function judgeOverlapsUnderLock(
  tx: Transaction,
  uids: readonly string[],
): Promise<JudgedOverlaps> {
  if (uids.length === 0) return NOTHING_JUDGED;
  const verdicts = await verdictsOf(tx, uids);
  const locked = new Map(
    (await lockOpenRuns(tx, [...verdicts.keys()], 'skipLocked')).map((run) => [run.id, run]),
  );
  // Not there, or not as it was: another transaction works on it, or has just ended it.
  const isAsItWas = ({ id, status }: Judged) => locked.get(id)?.status === status;
  const changed = [...verdicts.values()].filter((judged) => !isAsItWas(judged));
  const passedOver = new Set(changed.map(({ uid }) => uid));
  const now = await databaseNow(tx);
  const changes = [...verdicts.values()].flatMap((judged): RunChange[] => {
    const from = locked.get(judged.id);
    return from && !passedOver.has(judged.uid) ? [changeOf(from, judged.verdict, now)] : [];
  });
  const started = changes.filter(({ to }) => to.status === 'pending');
  return {
    started: started.length,
    toPull: started.some(({ to }) => queueOfLane(to.lane) !== null),
    toAdmit: changes.some(({ from }) => from.limitId !== null),
    skipped: changes.filter(({ to }) => to.status === 'skipped').length,
    replaced: changes.filter(({ to }) => to.status === 'cancelled').length,
    passedOver: [...passedOver],
    effects: await saveLockedRuns(tx, changes),
  };
}

/** The same; what was passed over is judged soon, by way of an effect. */
export async function judgeOverlapsNowOrSoon(
  tx: Transaction,
  uids: readonly string[],
): Promise<JudgedOverlaps> {
  const judged = await judgeOverlapsUnderLock(tx, uids);
  const effects = judged.effects + (await writeOverlapEffects(tx, judged.passedOver));
  return { ...judged, effects };
}

const NOTHING_JUDGED: JudgedOverlaps = {
  started: 0,
  toPull: false,
  toAdmit: false,
  skipped: 0,
  replaced: 0,
  passedOver: [],
  effects: 0,
};

/** What a judgement leaves to be done. */
export function workOf({ started, toPull, toAdmit, effects }: JudgedOverlaps): Work {
  return { effects, toClaim: started, toPull, toAdmit };
}

interface Judged {
  id: string;
  uid: string;
  status: OverlappingRun['status'];
  verdict: OverlapVerdict;
}

async function verdictsOf(tx: Executor, uids: readonly string[]): Promise<Map<string, Judged>> {
  const rows = await rowsOf<{
    uid: string;
    overlap: Overlap;
    id: string;
    status: OverlappingRun['status'];
    created_at: InstantText;
  }>(
    tx,
    sql`SELECT s.uid, s.overlap, r.id, r.status, r.created_at FROM schedules s
    JOIN runs r ON r.schedule_uid = s.uid AND r.overlap_guarded WHERE s.uid = ANY (${uuids(uids)})`,
  );
  const bySchedule = Map.groupBy(rows, ({ uid }) => uid);
  const judged = new Map<string, Judged>();
  for (const open of bySchedule.values()) {
    const overlap = open[0]?.overlap ?? 'allow';
    const runs = open.map((row) => ({ ...row, createdAt: toInstant(row.created_at) }));
    const verdicts = judgeOverlap(overlap, runs);
    for (const { id, uid, status } of runs) {
      const verdict = verdicts.get(id);
      if (verdict) judged.set(id, { id, uid, status, verdict });
    }
  }
  return judged;
}

function changeOf(from: RunRecord, verdict: OverlapVerdict, now: Instant): RunChange {
  if (verdict === 'pending') return { from, to: releaseRun(from, now) };
  if (verdict === 'skipped') return { from, to: endRun(from, { status: 'skipped', reason: 'overlap' }, now) };
  const to = endRun(from, { status: 'cancelled', reason: 'replaced' }, now);
  return { from, to, also: from.status === 'running' ? ['cancel'] : [] };
}

/**
 * Schedules whose open runs were recorded while they could overlap, and now must not: from now on these runs count. Runs that
 * maintenance holds count when it is over (store/maintenance/held-runs.ts).
 */
export async function guardOpenRuns(tx: Executor, uids: readonly string[]): Promise<void> {
  await tx.execute(
    sql`UPDATE runs r SET overlap_guarded = true
    WHERE r.schedule_uid = ANY (${uuids(uids)}) AND NOT r.overlap_guarded
      AND NOT EXISTS (SELECT FROM held_runs h WHERE h.run_id = r.id)`,
  );
}
