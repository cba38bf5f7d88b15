import type { Run } from '../../../clients/typescript/src/generated/types.gen.ts';

/** Since when an attempt of the run is made; null: none is. What was claimed before stays on record when it ends. */
export function underWaySince({ status, claimedAt }: Pick<Run, 'status' | 'claimedAt'>): string | null {
  return status === 'pending' ? claimedAt : null;
}
