/** The statuses in which a run has ended. Only a retry, or a late report, leads out of them. */
export const RUN_ENDS = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'] as const;
export type RunEnd = (typeof RUN_ENDS)[number];
