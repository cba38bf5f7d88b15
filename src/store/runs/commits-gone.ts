import { sql } from 'drizzle-orm';
import { fromMs, milliseconds, uuids } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstant, toInstantOrNull } from '../../postgres/sql/rows.ts';
import type { ConfirmedCommit } from '../../runtime/confirmed-commits.ts';

/** What clocks may differ by, and more. */
const SLACK_MS = 3_600_000;

/** Those that the database had confirmed, and does not know: their rows are not there, or are others under the same id. */
export async function commitsGone(db: Executor, commits: readonly ConfirmedCommit[]): Promise<ConfirmedCommit[]> {
  const ids = uuids(commits.map(({ runId }) => runId));
  const since = Math.min(...commits.map(({ at }) => at)) - SLACK_MS;
  const rows = await rowsOf<{ id: string; created: InstantText; finished: InstantText | null }>(db)(sql`-- commitsGone
    SELECT id, created_at AS created, NULL::timestamptz AS finished FROM runs WHERE id = ANY (${ids})
    UNION ALL
    SELECT id, created_at, finished_at FROM history
    WHERE id = ANY (${ids}) AND ended_at >= ${fromMs(sql`(${milliseconds([since])})[1]`)}`);
  const found = new Map(rows.map((row) => [row.id, row]));
  return commits.filter(({ runId, kind, at }) => {
    const row = found.get(runId);
    if (!row) return true;
    return (kind === 'recorded' ? toInstant(row.created) : toInstantOrNull(row.finished)) !== Math.trunc(at);
  });
}
