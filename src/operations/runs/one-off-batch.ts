/**
 * Guarantees: what callers call new one-off runs, their batch among it, and who made them, is written with them.
 * Transaction: the caller's.
 * If the process dies here: nothing of the call is written.
 */
import { type Instant, isoOrNull } from '../../core/instant.ts';
import type { Batch } from '../../core/runs/one-off-run.ts';
import { randomRunId } from '../../core/runs/run.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Auditor } from '../../store/audit/record-audit.ts';
import { commonBatch, recordBatch, recordTags } from '../../store/runs/run-tags.ts';
import type { Draft } from './one-off-links.ts';

/** Answers the batch of the new runs; if none is new, the one that all of them are in. `batch` is null: one run was asked for alone. */
export async function tagRuns(
  tx: Transaction,
  drafts: readonly Draft[],
  batch: Batch | null,
  now: Instant,
): Promise<string | null> {
  const tags = drafts.flatMap(({ run: { ref, labels }, id: runId, created }, place) =>
    created ? [{ runId, ref, place, labels }] : [],
  );
  const isNamed = batch !== null && tags.length > 0;
  const batchId = isNamed ? randomRunId(now) : null;
  if (isNamed && batchId !== null) await recordBatch(tx, batchId, batch, now);
  await recordTags(tx, tags, batchId);
  if (batch === null || isNamed) return batchId;
  return commonBatch(
    tx,
    drafts.map(({ id }) => id),
  );
}

export async function noteCreated(
  tx: Transaction,
  auditor: Auditor | undefined,
  drafts: readonly Draft[],
  { batch, batchId }: { batch: Batch | null; batchId: string | null },
): Promise<void> {
  const created = drafts.filter((draft) => draft.created);
  const [first] = created;
  if (!auditor || !first) return;
  const { id, run } = first;
  const ofOne = { runAt: isoOrNull(run.runAt), dependencies: run.dependsOn.length };
  const counts = { created: created.length, existing: drafts.length - created.length };
  await auditor.note(tx, {
    action: 'run.create',
    subject: batchId ?? id,
    scheduleId: null,
    // The keys of a batch may be in several scopes.
    runName: batch ? null : run.key,
    detail: batch ? { name: batch.name, ...counts } : ofOne,
  });
}
