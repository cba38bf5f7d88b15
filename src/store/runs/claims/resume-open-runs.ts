import { sql } from 'drizzle-orm';
import { resumeRun } from '../../../core/runs/lost-claim.ts';
import { databaseNow, rowsOf } from '../../../postgres/sql/rows.ts';
import type { Transaction } from '../../../postgres/executor.ts';
import { lockOpenRuns, saveLockedRuns } from '../lock-and-save.ts';
import { loadRunFacts } from './run-facts.ts';

export interface PendingAfterResume {
  /** At most once, and now `unknown`. */
  ended: number;
  /** Their target is asked whether they arrived before anything is sent. */
  asked: number;
  /** Of the others. */
  left: number;
}

/** Where a walk over all open runs stands. */
interface ResumedPage extends PendingAfterResume {
  /** Null: this was the last page. */
  next: string | null;
}

/**
 * One page of the pending and waiting runs of a restored database, by id: they may have been sent since the backup
 * (core/runs/lost-claim.ts, resumeRun).
 */
export async function resumeOpenRuns(
  tx: Transaction,
  { after, limit, ...given }: { after: string; limit: number; reason: string; lockTtlSeconds: number },
): Promise<ResumedPage> {
  const page = await rowsOf<{ id: string }>(tx)(sql`-- resumeOpenRuns
    SELECT id FROM runs WHERE status IN ('pending', 'waiting') AND id > ${after}::uuid ORDER BY id LIMIT ${limit}`);
  const locked = await lockOpenRuns(
    tx,
    page.map(({ id }) => id),
    'wait',
  );
  const runs = locked.filter(({ status }) => status !== 'running');
  const facts = await loadRunFacts(tx, runs);
  const now = await databaseNow(tx);
  const changes = runs.flatMap((from) => {
    const to = resumeRun(from, facts.of(from), given, now);
    return to ? [{ from, to }] : [];
  });
  await saveLockedRuns(tx, changes);
  const ended = changes.filter(({ to }) => to.status === 'unknown').length;
  const asked = changes.length - ended;
  const next = page.length === limit ? (page.at(-1)?.id ?? null) : null;
  return { ended, asked, left: runs.length - changes.length, next };
}
