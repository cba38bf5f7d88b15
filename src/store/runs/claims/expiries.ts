import { sql } from 'drizzle-orm';
import { type Instant, isoInstant } from '../../../core/instant.ts';
import type { Settlement } from '../../../core/runs/attempts/settlement.ts';
import { expireRun, isStillSilent } from '../../../core/runs/expire-run.ts';
import { queueOfLane } from '../../../core/runs/run-lane.ts';
import type { RunRecord } from '../../../core/runs/run-record.ts';
import type { Executor, Transaction } from '../../../postgres/executor.ts';
import { uuids } from '../../../postgres/sql/arrays.ts';
import { databaseNow, preparedRecordsOf } from '../../../postgres/sql/rows.ts';
import { type MeetingLocks, lockOpenRuns, saveLockedRuns } from '../lock-and-save.ts';

type OfRecord = 'id' | 'scheduleUid' | 'scheduleVersion' | 'failures' | 'firstClaimedAt' | 'workerId' | 'observed';

/** A run whose worker, target or job was not heard of in time. */
export interface SilentRun extends Pick<RunRecord, OfRecord> {
  scheduleId: string | null;
  attempt: number;
  startedAt: Instant;
  /** Null: it is not pulled. */
  queue: string | null;
  expiresAt: Instant;
  isLimited: boolean;
}

/** Since when workers and targets can be heard of, and how much of its lease, at most, a run gets from then on. */
export interface ListeningSince {
  since: Instant;
  graceSeconds: number;
}

/**
 * The longest silent runs first, and the moment of this look. After an outage each run gets half its lease to report again: a worker
 * that beats every third of its lease has time to do so.
 */
export async function findSilent(
  db: Executor,
  { since, graceSeconds }: ListeningSince,
  { limit, besides }: { limit: number; besides: readonly string[] },
): Promise<{ runs: SilentRun[]; now: Instant }> {
  type Row = Omit<SilentRun, 'queue'> & { lane: string; now: Instant };
  const rows = await preparedRecordsOf<Row>(db)(sql`-- findSilent
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT r.id, r.schedule_uid, r.schedule_version, nullif(r.schedule_id, '') AS schedule_id, r.lane, r.attempts AS attempt, r.failures,
      coalesce(r.handoff_started_at, r.claimed_at, r.expires_at) AS started_at, r.first_claimed_at, r.worker_id,
      r.expires_at, r.limit_id IS NOT NULL AS is_limited, r.observed, clock.now
    FROM clock, runs r
    WHERE (r.status = 'running' OR r.observed) AND r.expires_at <= (SELECT now FROM clock)
      AND clock.now >= ${isoInstant(since)}::timestamptz
        + make_interval(secs => least(coalesce(r.lease_seconds, 0) / 2, ${graceSeconds}::float8))
      AND r.id <> ALL (${uuids(besides)})
    ORDER BY r.expires_at LIMIT ${limit}`);
  const runs = rows.map(({ lane, ...run }) => ({ ...run, queue: queueOfLane(lane) }));
  return { runs, now: rows[0]?.now ?? since };
}

/** What becomes of a silent run. */
export interface Expiry {
  run: SilentRun;
  settlement: Settlement;
}

/** Settles them where they are still silent, in the same attempt. Answers the ids of those it settled. */
export async function expireIfStillSilent(
  tx: Transaction,
  expiries: readonly Expiry[],
  meeting: MeetingLocks,
): Promise<{ ids: ReadonlySet<string>; effects: number }> {
  const byId = new Map(expiries.map((expiry) => [expiry.run.id, expiry]));
  const locked = await lockOpenRuns(tx, [...byId.keys()], meeting);
  const now = await databaseNow(tx);
  const changes = locked.flatMap((from) => {
    const expiry = byId.get(from.id);
    if (!expiry || !isStillSilent(from, expiry.run.attempt, now)) return [];
    return [{ from, to: expireRun(from, expiry.settlement, now) }];
  });
  return { ids: new Set(changes.map(({ from }) => from.id)), effects: await saveLockedRuns(tx, changes) };
}
