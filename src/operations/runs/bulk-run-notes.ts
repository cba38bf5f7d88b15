/**
 * Guarantees: each transaction of a bulk action that changes runs leaves an entry in the audit that names these runs, and the filter.
 * Transaction: that of the changes.
 * If the process dies here: neither the changes nor the entry are there.
 */
import type { AuditDetail } from '../../core/audit.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { RunStatus, RunTrigger } from '../../core/runs/run.ts';
import type { Transaction } from '../../postgres/executor.ts';
import type { Auditor } from '../../store/audit/record-audit.ts';
import type { Labels } from '../../store/schedules/search/labelled-schedules.ts';

export interface BulkRunFilter {
  scheduleId?: string | undefined;
  labels?: Labels | undefined;
  statuses?: readonly RunStatus[] | undefined;
  triggers?: readonly RunTrigger[] | undefined;
  /** Inclusive, of scheduledFor. */
  from?: Instant | undefined;
  /** Exclusive. */
  to?: Instant | undefined;
}

/** What all entries of one call have in common. */
export interface BulkNoting {
  action: string;
  filter: BulkRunFilter;
  matched: number;
  /** How many entries there are already. */
  parts: number;
}

/** A batch is small enough for an entry to name all of its runs. */
export async function noteBulkRuns(
  tx: Transaction,
  auditor: Auditor | undefined,
  { action, filter, matched, parts }: BulkNoting,
  runs: readonly string[],
): Promise<void> {
  if (!auditor || runs.length === 0) return;
  const counts = { matched, changed: runs.length, part: parts + 1 };
  await auditor.note(tx, {
    ...{ action: 'runs.bulk', subject: null, scheduleId: filter.scheduleId ?? null },
    detail: { action, ...counts, filter: shown(filter), runs },
  });
}

/** A filter may have very many labels, and long ones; each entry of the call repeats it. */
const MAX_LABELS = 20;
const MAX_LENGTH = 200;

/** In the words of the API. */
function shown({ scheduleId, labels, statuses, triggers, from, to }: BulkRunFilter): AuditDetail[string] {
  const label = labels?.slice(0, MAX_LABELS).map((pair) => pair.join(':').slice(0, MAX_LENGTH));
  const period = [from, to].map((at) => (at === undefined ? undefined : isoInstant(at)));
  const named = { scheduleId, label, status: statuses, trigger: triggers, from: period[0], to: period[1] };
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}
