import type { RunSettled } from '../../core/events.ts';
import type { Instant } from '../../core/instant.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';

/** What a report has made of a run, for those who count and log it. */
export function settledOf(
  { firstClaimedAt, lostAt, handedOffAt }: RunRecord,
  { status, error, finishedAt }: Pick<RunRecord, 'status' | 'error'> & { finishedAt: Instant },
): RunSettled {
  return {
    status,
    error: error?.message ?? null,
    durationMs: firstClaimedAt === null ? null : finishedAt - firstClaimedAt,
    retryAt: null,
    // A run that was handed off before has been counted already.
    recovered: lostAt !== null && handedOffAt === null,
    inDoubt: false,
  };
}
