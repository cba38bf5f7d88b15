/** How a run can end: the statuses that only a retry, or a late word of its target, leads out of. */
export const RUN_ENDS = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'] as const;
export type RunEnd = (typeof RUN_ENDS)[number];
