/** The statuses in which a run has ended. Only a retry, or a late report, leads out of them. */
export const RUN_ENDS = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'] as const;
export type RunEnd = (typeof RUN_ENDS)[number];

/** The ends that count as failures of a schedule. A run that was skipped or cancelled says nothing about its target. */
export const FAILING_ENDS: readonly string[] = ['failed', 'unknown', 'abandoned'] satisfies RunEnd[];
