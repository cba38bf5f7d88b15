/**
 * The names that the document gives to bodies and answers without a named schema. The others are named after their
 * operation: `PutThingInput`, `PutThingAnswer`.
 */
export const NAMES: Readonly<Record<string, { input?: string; answer?: string }>> = {
  getHealth: { answer: 'Health' },
  listSchedules: { answer: 'SchedulePage' },
  putSchedules: { input: 'ScheduleBatchInput', answer: 'ScheduleBatchResult' },
  actOnSchedules: { input: 'ScheduleBulkInput', answer: 'ScheduleBulkResult' },
  fireSchedule: { input: 'FireInput' },
  skipFire: { input: 'SkipInput', answer: 'SkippedFire' },
  unskipFire: { input: 'SkipInput', answer: 'SkippedFire' },
  backfillSchedule: { input: 'BackfillInput', answer: 'BackfillResult' },
  listVersions: { answer: 'VersionPage' },
  listUpcomingFires: { answer: 'UpcomingFires' },
  previewFires: { input: 'PreviewInput', answer: 'Preview' },
  listOccurrences: { answer: 'OccurrencePage' },
  getLoad: { answer: 'Load' },
  listCalendars: { answer: 'CalendarPage' },
  listRuns: { answer: 'RunPage' },
  listRunsOfSchedule: { answer: 'RunPage' },
  createRuns: { input: 'RunBatchInput', answer: 'RunBatchResult' },
  cancelRun: { input: 'NothingInput' },
  retryRun: { input: 'NothingInput' },
  actOnRuns: { input: 'RunBulkInput', answer: 'RunBulkResult' },
  claimRuns: { answer: 'ClaimedRuns' },
  listQueues: { answer: 'QueueList' },
  listLimits: { answer: 'LimitPage' },
  listInstances: { answer: 'InstanceList' },
};
