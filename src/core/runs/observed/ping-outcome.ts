/** `unknown`: of the key. `unchanged`: it had been said before. `dropped`: a text without a run. `late`: it made right what had expired. */
const REPORT_OUTCOMES = ['taken', 'early', 'late', 'extra', 'unchanged', 'dropped', 'unknown'] as const;
export type ReportOutcome = (typeof REPORT_OUTCOMES)[number];

/** `limited`: nothing was looked at. */
export const PING_OUTCOMES = [...REPORT_OUTCOMES, 'limited'] as const;
export type PingOutcome = (typeof PING_OUTCOMES)[number];
