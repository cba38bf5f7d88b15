import type { RunSettled } from '../../core/events.ts';
import type { Instant } from '../../core/instant.ts';
import { resultFault } from '../../core/runs/attempts/outcome-rules.ts';
import { type JudgedSuccess, judgedSuccess } from '../../core/runs/bounds.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { SuccessBounds } from '../../core/schedules/expect.ts';

/** What `expect` says of a success whose result is this. */
export function judgedReport(bounds: SuccessBounds | null, result: string | null): JudgedSuccess | null {
  return judgedSuccess(bounds, (expected) => resultFault(expected, result));
}

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
