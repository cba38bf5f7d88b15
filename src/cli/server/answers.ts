import type { answeredAlert } from '../../api/alerts/routes.ts';
import type { z } from 'zod';
import type { auditEntry } from '../../api/audit/routes.ts';
import type { calendar } from '../../api/calendars/routes.ts';
import type { connection } from '../../api/connections/schemas.ts';
import type { bulkAnswer } from '../../api/http/filter-schemas.ts';
import type { caller } from '../../api/access/caller-routes.ts';
import type { instanceList, verification } from '../../api/instances/routes.ts';
import type { maintenanceAnswer, tookOverAnswer } from '../../api/instances/installation-routes.ts';
import type { limit } from '../../api/limits/routes.ts';
import type { previewedTimes, upcomingTimes } from '../../api/occurrences/preview-schemas.ts';
import type { backfilled, occurrence } from '../../api/occurrences/routes.ts';
import type { notifier } from '../../api/notifiers/routes.ts';
import type { queues } from '../../api/queues/routes.ts';
import type { batchAnswer, oneOffBatchAnswer } from '../../api/runs/one-off-schemas.ts';
import type { run, wholeRun } from '../../api/runs/answers.ts';
import type { schedule } from '../../api/schedules/schemas.ts';
import type { comparison, scheduleVersion } from '../../api/schedules/history-routes.ts';
import type { skipAnswer } from '../../api/schedules/fire-routes.ts';
import type { stats } from '../../api/stats/routes.ts';

/** What the API answers, by its schemas; no more of the API than these types is known here. As JSON, an answer is shown whole. */
export interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

export type AlertAnswer = z.output<typeof answeredAlert>;
export type AuditAnswer = z.output<typeof auditEntry>;
export type BackfillAnswer = z.output<typeof backfilled>;
export type BatchAnswer = z.output<typeof batchAnswer>;
export type BulkAnswer = z.output<ReturnType<typeof bulkAnswer>>;
export type CalendarAnswer = z.output<typeof calendar>;
export type CallerAnswer = z.output<typeof caller>;
export type ConnectionAnswer = z.output<typeof connection>;
export type FireTimeAnswer = UpcomingAnswer['items'][number];
export type InstanceAnswer = z.output<typeof instanceList>['items'][number];
export type LimitAnswer = z.output<typeof limit>;
export type MaintenanceAnswer = z.output<typeof maintenanceAnswer>;
export type NotifierAnswer = z.output<typeof notifier>;
export type ObservedAnswer = z.output<typeof comparison>;
export type OccurrenceAnswer = z.output<typeof occurrence>;
export type PreviewAnswer = z.output<typeof previewedTimes>;
export type QueueAnswer = z.output<typeof queues>['items'][number];
export type RunAnswer = z.output<typeof run>;
export type ScheduleAnswer = z.output<typeof schedule>;
export type ScheduleVersionAnswer = z.output<typeof scheduleVersion>;
export type SkippedAnswer = z.output<typeof skipAnswer>;
export type StatsAnswer = z.output<typeof stats>;
export type SubmittedAnswer = z.output<typeof oneOffBatchAnswer>;
export type TookOverAnswer = z.output<typeof tookOverAnswer>;
export type UpcomingAnswer = z.output<typeof upcomingTimes>;
export type VerifyAnswer = z.output<typeof verification>;
export type WholeRunAnswer = z.output<typeof wholeRun>;
