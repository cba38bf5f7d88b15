import { type SQL, sql } from 'drizzle-orm';
import { isStatementCancelled } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { type Check, RUN_CHECKS, SETTLED_SECONDS, WORK_CHECKS } from './run-checks.ts';
import { SCHEDULE_CHECKS } from './schedule-checks.ts';

interface CheckResult {
  name: string;
  holds: string;
  /** False: the check took too long and was stopped. Then it has no result. */
  complete: boolean;
  /** At most as many as the limit of the check. */
  violations: number;
  /** The first violations, each a sentence. */
  examples: string[];
}

/** After which the server stops one check, and all of them together. */
const CHECK_LIMIT_MS = 5_000;
const ALL_LIMIT_MS = 30_000;
/** The limit for all of them, with the time that the server needs to stop one. */
export const VERIFY_LIMIT_MS = ALL_LIMIT_MS + 2 * CHECK_LIMIT_MS;
const MAX_COUNTED = 10_000;
const MAX_EXAMPLES = 10;

export const ALL_CHECKS: readonly Check[] = [...SCHEDULE_CHECKS, ...RUN_CHECKS, ...WORK_CHECKS];

/**
 * Does all checks on one snapshot, so that a run that moves from one table to the other between two of them is no violation. The
 * transaction must be fresh: nothing was read in it yet. It only reads, and takes no lock that a fire waits for.
 */
export async function checkOnSnapshot(
  tx: Transaction,
  monotonic: () => number,
  checks: readonly Check[] = ALL_CHECKS,
): Promise<CheckResult[]> {
  await tx.execute(sql`-- checkOnSnapshot
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`);
  const end = monotonic() + ALL_LIMIT_MS;
  const results: CheckResult[] = [];
  for (const check of checks) results.push(await doCheck(tx, check, end - monotonic()));
  return results;
}

async function doCheck(tx: Transaction, { name, holds, found }: Check, remainingMs: number): Promise<CheckResult> {
  const stopped = { name, holds, complete: false, violations: 0, examples: [] };
  const limitMs = Math.floor(Math.min(remainingMs, CHECK_LIMIT_MS));
  if (limitMs <= 0) return stopped;
  try {
    // A savepoint: a check that is stopped must not take the others with it.
    return await tx.transaction(async (scope) => {
      await scope.execute(
        sql.raw(`-- doCheck
        SET LOCAL statement_timeout = ${limitMs}`),
      );
      const [row] = await rowsOf<{ violations: number; examples: string }>(scope)(sql`-- doCheck
        ${countOf(found)}`);
      if (!row) throw new Error(`the check ${name} answered no row`);
      return {
        name,
        holds,
        complete: true,
        violations: row.violations,
        examples: JSON.parse(row.examples) as string[],
      };
    });
  } catch (error) {
    if (isStatementCancelled(error)) return stopped;
    throw error;
  }
}

function countOf(found: SQL): SQL {
  return sql`WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
    settled AS MATERIALIZED (SELECT now - make_interval(secs => ${SETTLED_SECONDS}) AS at FROM clock),
    numbered AS (
      SELECT name || ': ' || fault AS example, row_number() OVER () AS place
      FROM (SELECT name, fault FROM (${found}) AS found LIMIT ${MAX_COUNTED}) AS counted
    )
    SELECT count(*)::int AS violations,
      coalesce(json_agg(example) FILTER (WHERE place <= ${MAX_EXAMPLES}), '[]')::text AS examples FROM numbered`;
}
