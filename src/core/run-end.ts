/** The statuses of an ended run. Only a retry, or a late report, changes them. */
export const RUN_ENDS = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'] as const;
export type RunEnd = (typeof RUN_ENDS)[number];

/** The ends that count as failures of a schedule. A skipped or cancelled run says nothing about its target. */
export const FAILING_ENDS: readonly string[] = ['failed', 'unknown', 'abandoned'] satisfies RunEnd[];
