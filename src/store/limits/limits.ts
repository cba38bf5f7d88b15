import { sql } from 'drizzle-orm';
import type { NamedRows, NamedThing } from '../names/named-rows.ts';
import { runsInScope } from '../scopes/in-scope.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import { ints, texts } from '../../postgres/sql/arrays.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { onlyColumnOf, queryPrepared } from '../../postgres/sql/rows.ts';
import { noHandoffs } from '../instances/installation-row.ts';
import { MAY_BEGIN } from '../runs/begin-by.ts';
import { ATTENDED_LANES, isPull, isUnattended } from '../runs/statement-parts.ts';

/** How many of its runs may be under way at once, and how they stand at this moment: those that a caller of some scope sees. */
export interface Limit extends NamedThing {
  description: string | null;
  maxRunning: number;
  /** Under way: claimed, or `running`. */
  running: number;
  /** Due, and not under way. */
  waiting: number;
}

export const LIMIT_ROWS: NamedRows<Limit> = {
  table: 'limits',
  whole: (page, scope) => {
    const conditions = [sql`r.limit_id = n.id`, ...runsInScope(scope, 'read')];
    return sql`SELECT n.*, counted.*, 0 AS row_bytes FROM (${page}) AS n, LATERAL (
      SELECT count(*) FILTER (WHERE r.status = 'running' OR r.claimed_by IS NOT NULL)::int AS running,
        count(*) FILTER (WHERE r.status = 'pending' AND r.claimed_by IS NULL
          AND r.due_at <= (SELECT clock_timestamp()))::int AS waiting
      FROM runs r WHERE ${sql.join(conditions, sql` AND `)}) AS counted`;
  },
  columnsOf: ({ description, maxRunning }) => ({ description, max_running: maxRunning }),
};

/** A run that waits for a place of its limit, in the words of the index `runs_to_admit`. */
const WAITS = sql`status = 'pending' AND limit_id IS NOT NULL AND admitted_at IS NULL`;

/** A pull run that has a place while no worker asks for its queue: others may have the place. */
const IS_IDLE = sql`(status = 'pending' AND claimed_by IS NULL AND ${isUnattended(sql`lane`)})`;

const RANKS = ints(Object.values(PRIORITY_RANK).sort((a, b) => a - b));

interface LimitsToAdmit {
  /** Limits with a place, and with a due run that waits for it; at most as many as asked for. */
  ids: string[];
  /** In how many ms the next run with a limit comes due, where none of that limit is due yet; null: none is recorded. */
  msUntilNextDue: number | null;
  /** From where the next look goes on; null: there are no names behind these. */
  next: string | null;
}

/** Names of limits that one look goes through. */
const NAMES_AT_ONCE = 500;

/**
 * Steps from limit to limit through the index of runs that wait, from a name on and through some hundred. It sees one moment and
 * locks nothing: a hint for admitUnderLock, which decides. None while maintenance holds runs: a place that is given then would keep out
 * what is more urgent afterwards.
 */
export async function limitsToAdmit(
  db: Executor,
  most: number,
  { after = '', names = NAMES_AT_ONCE }: { after?: string; names?: number } = {},
): Promise<LimitsToAdmit> {
  const [row] = await queryPrepared<{ ids: string | null; ms: number | null; last: string | null }>(
    db,
  )(sql`-- limitsToAdmit
    WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${ATTENDED_LANES}, named AS (
      (SELECT limit_id, 1 AS place FROM runs WHERE ${WAITS} AND limit_id > ${after} ORDER BY limit_id LIMIT 1)
      UNION ALL
      SELECT following.limit_id, named.place + 1 FROM named, LATERAL (
        SELECT limit_id FROM runs WHERE ${WAITS} AND limit_id > named.limit_id ORDER BY limit_id LIMIT 1) AS following
      WHERE named.place < ${names}
    ), next AS (
      SELECT named.limit_id, min(first.due_at) AS due_at FROM named, unnest(${RANKS}) AS rank, LATERAL (
        SELECT due_at FROM runs WHERE ${WAITS} AND limit_id = named.limit_id AND priority = rank
          AND NOT ${isUnattended(sql`lane`)} AND ${MAY_BEGIN} ORDER BY due_at LIMIT 1) AS first
      GROUP BY named.limit_id
    ), admissible AS (
      SELECT l.id FROM next JOIN limits l ON l.id = next.limit_id
      WHERE NOT ${noHandoffs} AND next.due_at <= (SELECT now FROM clock) AND l.max_running > (
        SELECT count(*) FROM runs WHERE limit_id = l.id AND admitted_at IS NOT NULL AND NOT ${IS_IDLE})
      ORDER BY l.id LIMIT ${most}
    )
    SELECT (SELECT string_agg(id, ' ') FROM admissible) AS ids,
      (SELECT extract(epoch FROM min(due_at) - (SELECT now FROM clock)) * 1000 FROM next
        WHERE due_at > (SELECT now FROM clock))::float8 AS ms,
      (SELECT limit_id FROM named WHERE place = ${names}) AS last`);
  const ids = row?.ids?.split(' ') ?? [];
  // Those behind the last one of these come next, whether the others have places or not.
  const next = ids.length === most ? (ids.at(-1) ?? null) : (row?.last ?? null);
  return { ids, msUntilNextDue: row?.ms ?? null, next };
}

interface Admitted {
  /** Runs that may be claimed now: those that are sent, and those that workers pull. */
  toClaim: number;
  toPull: number;
}

/** Runs that one statement lets in, for each limit. */
const MAX_AT_ONCE = 500;

/**
 * Gives free places of these limits to due runs, by priority, then due time. The limits' rows are locked first: all who give places
 * take that lock, so the count that the next statements make stays true until the commit. A place is taken by a run's row
 * (`admitted_at`) and by nothing else, so the death of an instance leaks none. It is given back by the end of the run, whose row leaves
 * `runs`; by `settleAttempt`, `expireRun`, `resumeRun` and `reopenRun`, where another attempt follows; and by `giveUpIdlePlaces` here.
 * Limits that another transaction has locked are passed over.
 */
export async function admitUnderLock(tx: Transaction, ids: readonly string[]): Promise<Admitted> {
  const locked = await onlyColumnOf<string>(tx)(sql`-- admitUnderLock
    SELECT id FROM limits WHERE id = ANY (${texts(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`);
  if (locked.length === 0) return { toClaim: 0, toPull: 0 };
  await giveUpIdlePlaces(tx, locked);
  return admitLocked(tx, locked);
}

/** The same, of limits whose rows the transaction has locked by an earlier statement. */
export async function admitLocked(db: Executor, ids: readonly string[]): Promise<Admitted> {
  const admitted = await queryPrepared<{ is_pull: boolean }>(db)(sql`-- admitLocked
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now), ${ATTENDED_LANES}, free AS MATERIALIZED (
      SELECT l.id, l.max_running - (
        SELECT count(*) FROM runs WHERE limit_id = l.id AND admitted_at IS NOT NULL)::int AS places
      FROM limits l WHERE l.id = ANY (${texts(ids)})
    ), candidates AS MATERIALIZED (
      SELECT next.*, free.id AS limit_id, free.places FROM free, unnest(${RANKS}) AS rank, LATERAL (
        SELECT id, priority, due_at FROM runs WHERE ${WAITS} AND limit_id = free.id AND priority = rank
          AND due_at <= (SELECT now FROM clock) AND NOT ${isUnattended(sql`lane`)} AND ${MAY_BEGIN}
        ORDER BY due_at LIMIT least(free.places, ${MAX_AT_ONCE}) FOR UPDATE SKIP LOCKED) AS next
      WHERE free.places > 0
    ), chosen AS (
      SELECT id FROM (
        SELECT *, row_number() OVER (PARTITION BY limit_id ORDER BY priority, due_at, id) AS place FROM candidates) AS ranked
      WHERE place <= places
    )
    UPDATE runs r SET admitted_at = clock.now, ready = true
    FROM clock WHERE r.id = ANY (ARRAY(SELECT id FROM chosen))
    RETURNING ${isPull(sql`r.lane`)} AS is_pull`);
  const toPull = admitted.filter(({ is_pull }) => is_pull).length;
  return { toClaim: admitted.length - toPull, toPull };
}

/** Their runs get places again, in their turn, when a worker asks. */
async function giveUpIdlePlaces(tx: Transaction, ids: readonly string[]): Promise<void> {
  await tx.execute(sql`-- giveUpIdlePlaces
    WITH ${ATTENDED_LANES}, idle AS MATERIALIZED (
      SELECT id FROM runs WHERE limit_id = ANY (${texts(ids)}) AND admitted_at IS NOT NULL AND ${IS_IDLE}
      ORDER BY id FOR UPDATE SKIP LOCKED
    )
    UPDATE runs r SET admitted_at = NULL, ready = false WHERE r.id = ANY (ARRAY(SELECT id FROM idle))`);
}
