// This file is written by `npm run client` from the OpenAPI document.

import type { CallOptions, Input, Operation } from '../operation.ts';
import type {
    ActOnRunsData,
    ActOnRunsResponse,
    ActOnSchedulesData,
    ActOnSchedulesResponse,
    BackfillScheduleData,
    BackfillScheduleResponse,
    CancelRunData,
    CancelRunResponse,
    ClaimRunsData,
    ClaimRunsResponse,
    CompleteRunData,
    CompleteRunResponse,
    CreateRunData,
    CreateRunResponse,
    CreateRunsData,
    CreateRunsResponse,
    DeleteCalendarData,
    DeleteCalendarResponse,
    DeleteConnectionData,
    DeleteConnectionResponse,
    DeleteLimitData,
    DeleteLimitResponse,
    DeleteNotifierData,
    DeleteNotifierResponse,
    DeleteScheduleData,
    DeleteScheduleResponse,
    FireScheduleData,
    FireScheduleResponse,
    GetCalendarData,
    GetCalendarResponse,
    GetConnectionData,
    GetConnectionResponse,
    GetHealthData,
    GetHealthResponse,
    GetLimitData,
    GetLimitResponse,
    GetLoadData,
    GetLoadResponse,
    GetMaintenanceData,
    GetMaintenanceResponse,
    GetMeData,
    GetMeResponse,
    GetMetricsData,
    GetMetricsResponse,
    GetNotifierData,
    GetNotifierResponse,
    GetObservingData,
    GetObservingResponse,
    GetReadinessData,
    GetReadinessError,
    GetReadinessResponse,
    GetRunData,
    GetRunResponse,
    GetScheduleData,
    GetScheduleResponse,
    GetStatsData,
    GetStatsOfScheduleData,
    GetStatsOfScheduleResponse,
    GetStatsResponse,
    HeartbeatRunData,
    HeartbeatRunResponse,
    ListAlertsData,
    ListAlertsResponse,
    ListAuditData,
    ListAuditResponse,
    ListCalendarsData,
    ListCalendarsResponse,
    ListConnectionsData,
    ListConnectionsResponse,
    ListInstancesData,
    ListInstancesResponse,
    ListLimitsData,
    ListLimitsResponse,
    ListNotifiersData,
    ListNotifiersResponse,
    ListOccurrencesData,
    ListOccurrencesResponse,
    ListQueuesData,
    ListQueuesResponse,
    ListRunsData,
    ListRunsOfScheduleData,
    ListRunsOfScheduleResponse,
    ListRunsResponse,
    ListSchedulesData,
    ListSchedulesResponse,
    ListUpcomingFiresData,
    ListUpcomingFiresResponse,
    ListVersionsData,
    ListVersionsResponse,
    PatchScheduleData,
    PatchScheduleResponse,
    PreviewFiresData,
    PreviewFiresResponse,
    PutCalendarData,
    PutCalendarResponse,
    PutConnectionData,
    PutConnectionResponse,
    PutLimitData,
    PutLimitResponse,
    PutNotifierData,
    PutNotifierResponse,
    PutScheduleData,
    PutScheduleResponse,
    PutSchedulesData,
    PutSchedulesResponse,
    RetryRunData,
    RetryRunResponse,
    SetMaintenanceData,
    SetMaintenanceResponse,
    SkipFireData,
    SkipFireResponse,
    TakeOverData,
    TakeOverResponse,
    TestNotifierData,
    TestNotifierResponse,
    TryCalendarData,
    TryCalendarResponse,
    TryConnectionData,
    TryConnectionResponse,
    TryLimitData,
    TryLimitResponse,
    TryNotifierData,
    TryNotifierResponse,
    UnskipFireData,
    UnskipFireResponse,
    VerifyData,
    VerifyResponse,
} from './types.gen.ts';

export const OPERATIONS = {
    getHealth: { method: 'GET', path: '/healthz' },
    getReadiness: { method: 'GET', path: '/readyz', alsoGood: [503] },
    getMetrics: { method: 'GET', path: '/metrics' },
    listSchedules: { method: 'GET', path: '/api/v1/schedules' },
    getSchedule: { method: 'GET', path: '/api/v1/schedules/{id}' },
    putSchedule: { method: 'PUT', path: '/api/v1/schedules/{id}', bodyType: 'application/json' },
    patchSchedule: { method: 'PATCH', path: '/api/v1/schedules/{id}', bodyType: 'application/merge-patch+json' },
    deleteSchedule: { method: 'DELETE', path: '/api/v1/schedules/{id}' },
    putSchedules: { method: 'POST', path: '/api/v1/schedules/batch', bodyType: 'application/json' },
    actOnSchedules: { method: 'POST', path: '/api/v1/schedules/bulk', bodyType: 'application/json' },
    fireSchedule: { method: 'POST', path: '/api/v1/schedules/{id}/fire', bodyType: 'application/json' },
    skipFire: { method: 'POST', path: '/api/v1/schedules/{id}/skip', bodyType: 'application/json' },
    unskipFire: { method: 'POST', path: '/api/v1/schedules/{id}/unskip', bodyType: 'application/json' },
    backfillSchedule: { method: 'POST', path: '/api/v1/schedules/{id}/backfill', bodyType: 'application/json' },
    listVersions: { method: 'GET', path: '/api/v1/schedules/{id}/versions' },
    listUpcomingFires: { method: 'GET', path: '/api/v1/schedules/{id}/upcoming' },
    previewFires: { method: 'POST', path: '/api/v1/preview', bodyType: 'application/json' },
    listOccurrences: { method: 'GET', path: '/api/v1/schedules/{id}/occurrences' },
    getLoad: { method: 'GET', path: '/api/v1/load' },
    listCalendars: { method: 'GET', path: '/api/v1/calendars' },
    getCalendar: { method: 'GET', path: '/api/v1/calendars/{id}' },
    putCalendar: { method: 'PUT', path: '/api/v1/calendars/{id}', bodyType: 'application/json' },
    deleteCalendar: { method: 'DELETE', path: '/api/v1/calendars/{id}' },
    tryCalendar: { method: 'POST', path: '/api/v1/calendars/{id}/dry-run', bodyType: 'application/json' },
    listConnections: { method: 'GET', path: '/api/v1/connections' },
    getConnection: { method: 'GET', path: '/api/v1/connections/{id}' },
    putConnection: { method: 'PUT', path: '/api/v1/connections/{id}', bodyType: 'application/json' },
    deleteConnection: { method: 'DELETE', path: '/api/v1/connections/{id}' },
    tryConnection: { method: 'POST', path: '/api/v1/connections/{id}/dry-run', bodyType: 'application/json' },
    listNotifiers: { method: 'GET', path: '/api/v1/notifiers' },
    getNotifier: { method: 'GET', path: '/api/v1/notifiers/{id}' },
    putNotifier: { method: 'PUT', path: '/api/v1/notifiers/{id}', bodyType: 'application/json' },
    deleteNotifier: { method: 'DELETE', path: '/api/v1/notifiers/{id}' },
    tryNotifier: { method: 'POST', path: '/api/v1/notifiers/{id}/dry-run', bodyType: 'application/json' },
    testNotifier: { method: 'POST', path: '/api/v1/notifiers/{id}/test' },
    listRuns: { method: 'GET', path: '/api/v1/runs' },
    createRun: { method: 'POST', path: '/api/v1/runs', bodyType: 'application/json' },
    listRunsOfSchedule: { method: 'GET', path: '/api/v1/schedules/{id}/runs' },
    getRun: { method: 'GET', path: '/api/v1/runs/{id}' },
    createRuns: { method: 'POST', path: '/api/v1/runs/batch', bodyType: 'application/json' },
    cancelRun: { method: 'POST', path: '/api/v1/runs/{id}/cancel', bodyType: 'application/json' },
    retryRun: { method: 'POST', path: '/api/v1/runs/{id}/retry', bodyType: 'application/json' },
    completeRun: { method: 'POST', path: '/api/v1/runs/{id}/complete', bodyType: 'application/json' },
    heartbeatRun: { method: 'POST', path: '/api/v1/runs/{id}/heartbeat', bodyType: 'application/json' },
    actOnRuns: { method: 'POST', path: '/api/v1/runs/bulk', bodyType: 'application/json' },
    claimRuns: { method: 'POST', path: '/api/v1/queues/{queue}/claim', bodyType: 'application/json' },
    listQueues: { method: 'GET', path: '/api/v1/queues' },
    listLimits: { method: 'GET', path: '/api/v1/limits' },
    getLimit: { method: 'GET', path: '/api/v1/limits/{id}' },
    putLimit: { method: 'PUT', path: '/api/v1/limits/{id}', bodyType: 'application/json' },
    deleteLimit: { method: 'DELETE', path: '/api/v1/limits/{id}' },
    tryLimit: { method: 'POST', path: '/api/v1/limits/{id}/dry-run', bodyType: 'application/json' },
    listAlerts: { method: 'GET', path: '/api/v1/alerts' },
    getStats: { method: 'GET', path: '/api/v1/stats' },
    getStatsOfSchedule: { method: 'GET', path: '/api/v1/schedules/{id}/stats' },
    listInstances: { method: 'GET', path: '/api/v1/instances' },
    getMaintenance: { method: 'GET', path: '/api/v1/maintenance' },
    setMaintenance: { method: 'POST', path: '/api/v1/maintenance', bodyType: 'application/json' },
    getObserving: { method: 'GET', path: '/api/v1/observing' },
    takeOver: { method: 'POST', path: '/api/v1/take-over', bodyType: 'application/json' },
    getMe: { method: 'GET', path: '/api/v1/me' },
    verify: { method: 'GET', path: '/api/v1/verify' },
    listAudit: { method: 'GET', path: '/api/v1/audit' },
} as const satisfies Record<string, Operation>;

/** A method for each operation of the API. Each throws Problem where the daemon answers with an error. */
export interface Firelock {
    /** The process is alive. `GET /healthz` */
    getHealth: (input?: Input<GetHealthData>, options?: CallOptions) => Promise<GetHealthResponse>;
    /** Whether this instance does its work; warnings leave it ready. `GET /readyz` */
    getReadiness: (input?: Input<GetReadinessData>, options?: CallOptions) => Promise<GetReadinessResponse | GetReadinessError>;
    /** Metrics for Prometheus. `GET /metrics` */
    getMetrics: (input?: Input<GetMetricsData>, options?: CallOptions) => Promise<GetMetricsResponse>;
    /** List schedules, by id. `GET /api/v1/schedules`, role viewer */
    listSchedules: (input?: Input<ListSchedulesData>, options?: CallOptions) => Promise<ListSchedulesResponse>;
    /** One schedule; its ETag is its version. `GET /api/v1/schedules/{id}`, role viewer */
    getSchedule: (input: Input<GetScheduleData>, options?: CallOptions) => Promise<GetScheduleResponse>;
    /** Create a schedule, or replace it whole. `PUT /api/v1/schedules/{id}`, role admin */
    putSchedule: (input: Input<PutScheduleData>, options?: CallOptions) => Promise<PutScheduleResponse>;
    /** Change a schedule by JSON Merge Patch. `PATCH /api/v1/schedules/{id}`, role admin */
    patchSchedule: (input: Input<PatchScheduleData>, options?: CallOptions) => Promise<PatchScheduleResponse>;
    /** Delete a schedule that no other follows; its runs stay readable, and open ones are abandoned. `DELETE /api/v1/schedules/{id}`, role admin */
    deleteSchedule: (input: Input<DeleteScheduleData>, options?: CallOptions) => Promise<DeleteScheduleResponse>;
    /** Create or replace up to 1000 schedules, all or none. `POST /api/v1/schedules/batch`, role admin */
    putSchedules: (input: Input<PutSchedulesData>, options?: CallOptions) => Promise<PutSchedulesResponse>;
    /** Pause or resume the schedules that match a filter. `POST /api/v1/schedules/bulk`, role admin */
    actOnSchedules: (input: Input<ActOnSchedulesData>, options?: CallOptions) => Promise<ActOnSchedulesResponse>;
    /** Fire a schedule now, paused or not. `POST /api/v1/schedules/{id}/fire`, role operator */
    fireSchedule: (input: Input<FireScheduleData>, options?: CallOptions) => Promise<FireScheduleResponse>;
    /** Do not make one fire that is still to come; at its moment it is recorded as skipped. `POST /api/v1/schedules/{id}/skip`, role operator */
    skipFire: (input: Input<SkipFireData>, options?: CallOptions) => Promise<SkipFireResponse>;
    /** Make a fire after all that was to be skipped. `POST /api/v1/schedules/{id}/unskip`, role operator */
    unskipFire: (input: Input<UnskipFireData>, options?: CallOptions) => Promise<UnskipFireResponse>;
    /** Fire what a schedule, as it is now, would have fired in a past period; paused or not. `POST /api/v1/schedules/{id}/backfill`, role operator */
    backfillSchedule: (input: Input<BackfillScheduleData>, options?: CallOptions) => Promise<BackfillScheduleResponse>;
    /** Every write of a schedule, newest first; also of a deleted one. `GET /api/v1/schedules/{id}/versions`, role viewer */
    listVersions: (input: Input<ListVersionsData>, options?: CallOptions) => Promise<ListVersionsResponse>;
    /** When a schedule fires next, paused or not: strictly after `from`, or the fires still to come. `GET /api/v1/schedules/{id}/upcoming`, role viewer */
    listUpcomingFires: (input: Input<ListUpcomingFiresData>, options?: CallOptions) => Promise<ListUpcomingFiresResponse>;
    /** When an expression or an interval would fire, strictly after `from`. `POST /api/v1/preview`, role viewer */
    previewFires: (input: Input<PreviewFiresData>, options?: CallOptions) => Promise<PreviewFiresResponse>;
    /** Every moment at which a schedule was to fire, and what became of it; also of a deleted one. `GET /api/v1/schedules/{id}/occurrences`, role viewer */
    listOccurrences: (input: Input<ListOccurrencesData>, options?: CallOptions) => Promise<ListOccurrencesResponse>;
    /** How many fires of all enabled schedules are due when, as they are defined now. `GET /api/v1/load`, role viewer */
    getLoad: (input?: Input<GetLoadData>, options?: CallOptions) => Promise<GetLoadResponse>;
    /** List calendars, by id. `GET /api/v1/calendars`, role viewer */
    listCalendars: (input?: Input<ListCalendarsData>, options?: CallOptions) => Promise<ListCalendarsResponse>;
    /** One calendar; its ETag is its version. `GET /api/v1/calendars/{id}`, role viewer */
    getCalendar: (input: Input<GetCalendarData>, options?: CallOptions) => Promise<GetCalendarResponse>;
    /** Create a calendar, or replace it whole, and move the next fires of schedules that exclude it. `PUT /api/v1/calendars/{id}`, role admin */
    putCalendar: (input: Input<PutCalendarData>, options?: CallOptions) => Promise<PutCalendarResponse>;
    /** Delete a calendar that no schedule excludes. `DELETE /api/v1/calendars/{id}`, role admin */
    deleteCalendar: (input: Input<DeleteCalendarData>, options?: CallOptions) => Promise<DeleteCalendarResponse>;
    /** What PUT would change; changes nothing. `POST /api/v1/calendars/{id}/dry-run`, role admin */
    tryCalendar: (input: Input<TryCalendarData>, options?: CallOptions) => Promise<TryCalendarResponse>;
    /** List connections, by id. `GET /api/v1/connections`, role viewer */
    listConnections: (input?: Input<ListConnectionsData>, options?: CallOptions) => Promise<ListConnectionsResponse>;
    /** One connection, with its secret values masked; its ETag is its version. `GET /api/v1/connections/{id}`, role viewer */
    getConnection: (input: Input<GetConnectionData>, options?: CallOptions) => Promise<GetConnectionResponse>;
    /** Create a connection, or replace it whole: in force from the next attempt on, of open runs too. `PUT /api/v1/connections/{id}`, role admin */
    putConnection: (input: Input<PutConnectionData>, options?: CallOptions) => Promise<PutConnectionResponse>;
    /** Delete a connection that no schedule and no open run names. `DELETE /api/v1/connections/{id}`, role admin */
    deleteConnection: (input: Input<DeleteConnectionData>, options?: CallOptions) => Promise<DeleteConnectionResponse>;
    /** What PUT would change; changes nothing. `POST /api/v1/connections/{id}/dry-run`, role admin */
    tryConnection: (input: Input<TryConnectionData>, options?: CallOptions) => Promise<TryConnectionResponse>;
    /** List notifiers, by id. `GET /api/v1/notifiers`, role viewer */
    listNotifiers: (input?: Input<ListNotifiersData>, options?: CallOptions) => Promise<ListNotifiersResponse>;
    /** One notifier, with its secret values masked; its ETag is its version. `GET /api/v1/notifiers/{id}`, role viewer */
    getNotifier: (input: Input<GetNotifierData>, options?: CallOptions) => Promise<GetNotifierResponse>;
    /** Create a notifier, or replace it whole: messages recorded from then on go where it says. `PUT /api/v1/notifiers/{id}`, role admin */
    putNotifier: (input: Input<PutNotifierData>, options?: CallOptions) => Promise<PutNotifierResponse>;
    /** Delete a notifier that is no other one’s fallback; its open messages end as abandoned. `DELETE /api/v1/notifiers/{id}`, role admin */
    deleteNotifier: (input: Input<DeleteNotifierData>, options?: CallOptions) => Promise<DeleteNotifierResponse>;
    /** What PUT would change; changes nothing. `POST /api/v1/notifiers/{id}/dry-run`, role admin */
    tryNotifier: (input: Input<TryNotifierData>, options?: CallOptions) => Promise<TryNotifierResponse>;
    /** Send a message of the event `test` at once; the run says what became of it. `POST /api/v1/notifiers/{id}/test`, role admin */
    testNotifier: (input: Input<TestNotifierData>, options?: CallOptions) => Promise<TestNotifierResponse>;
    /** List runs, newest first; `from` and `to` mean `scheduledFor`. `GET /api/v1/runs`, role viewer */
    listRuns: (input?: Input<ListRunsData>, options?: CallOptions) => Promise<ListRunsResponse>;
    /** Have something done once, now or later. `POST /api/v1/runs`, role operator */
    createRun: (input: Input<CreateRunData>, options?: CallOptions) => Promise<CreateRunResponse>;
    /** List the runs of a schedule, newest first; also of a deleted one. `GET /api/v1/schedules/{id}/runs`, role viewer */
    listRunsOfSchedule: (input: Input<ListRunsOfScheduleData>, options?: CallOptions) => Promise<ListRunsOfScheduleResponse>;
    /** One run, with its target and its attempt log. `GET /api/v1/runs/{id}`, role viewer */
    getRun: (input: Input<GetRunData>, options?: CallOptions) => Promise<GetRunResponse>;
    /** Have up to 1000 things done once, which may depend on each other; all or none. `POST /api/v1/runs/batch`, role operator */
    createRuns: (input: Input<CreateRunsData>, options?: CallOptions) => Promise<CreateRunsResponse>;
    /** Cancel a run that has not ended. `POST /api/v1/runs/{id}/cancel`, role operator */
    cancelRun: (input: Input<CancelRunData>, options?: CallOptions) => Promise<CancelRunResponse>;
    /** Have a run that ended otherwise than well done again, under its id. `POST /api/v1/runs/{id}/retry`, role operator */
    retryRun: (input: Input<RetryRunData>, options?: CallOptions) => Promise<RetryRunResponse>;
    /** Say how a run ended: for pull workers, and targets whose `completion` is `callback`. `POST /api/v1/runs/{id}/complete`, role worker */
    completeRun: (input: Input<CompleteRunData>, options?: CallOptions) => Promise<CompleteRunResponse>;
    /** Say that a run is still being worked on. `POST /api/v1/runs/{id}/heartbeat`, role worker */
    heartbeatRun: (input: Input<HeartbeatRunData>, options?: CallOptions) => Promise<HeartbeatRunResponse>;
    /** Retry or cancel the runs that match a filter. `POST /api/v1/runs/bulk`, role operator */
    actOnRuns: (input: Input<ActOnRunsData>, options?: CallOptions) => Promise<ActOnRunsResponse>;
    /** Lease runs to a worker: at once where there are some, else as soon as there are. `POST /api/v1/queues/{queue}/claim`, role worker */
    claimRuns: (input: Input<ClaimRunsData>, options?: CallOptions) => Promise<ClaimRunsResponse>;
    /** The queues that have runs, or whose workers were seen lately; by name. `GET /api/v1/queues`, role viewer */
    listQueues: (input?: Input<ListQueuesData>, options?: CallOptions) => Promise<ListQueuesResponse>;
    /** List limits, by id. `GET /api/v1/limits`, role viewer */
    listLimits: (input?: Input<ListLimitsData>, options?: CallOptions) => Promise<ListLimitsResponse>;
    /** One limit, and how many of its runs are under way and wait; its ETag is its version. `GET /api/v1/limits/{id}`, role viewer */
    getLimit: (input: Input<GetLimitData>, options?: CallOptions) => Promise<GetLimitResponse>;
    /** Create a limit, or replace it; a smaller `maxRunning` stops nothing that is under way. `PUT /api/v1/limits/{id}`, role admin */
    putLimit: (input: Input<PutLimitData>, options?: CallOptions) => Promise<PutLimitResponse>;
    /** Delete a limit that no schedule and no open run names. `DELETE /api/v1/limits/{id}`, role admin */
    deleteLimit: (input: Input<DeleteLimitData>, options?: CallOptions) => Promise<DeleteLimitResponse>;
    /** What PUT would change; changes nothing. `POST /api/v1/limits/{id}/dry-run`, role admin */
    tryLimit: (input: Input<TryLimitData>, options?: CallOptions) => Promise<TryLimitResponse>;
    /** Episodes: what is wrong with schedules, and what was; newest first. `GET /api/v1/alerts`, role viewer */
    listAlerts: (input?: Input<ListAlertsData>, options?: CallOptions) => Promise<ListAlertsResponse>;
    /** What became of all runs of a period; `from` and `to` mean `scheduledFor`. `GET /api/v1/stats`, role viewer */
    getStats: (input?: Input<GetStatsData>, options?: CallOptions) => Promise<GetStatsResponse>;
    /** What became of the runs of a schedule; also of a deleted one. `GET /api/v1/schedules/{id}/stats`, role viewer */
    getStatsOfSchedule: (input: Input<GetStatsOfScheduleData>, options?: CallOptions) => Promise<GetStatsOfScheduleResponse>;
    /** The daemon processes, newest first; the dead stay listed for a day. `GET /api/v1/instances`, role viewer */
    listInstances: (input?: Input<ListInstancesData>, options?: CallOptions) => Promise<ListInstancesResponse>;
    /** Whether maintenance is on, for all instances. `GET /api/v1/maintenance`, role viewer */
    getMaintenance: (input?: Input<GetMaintenanceData>, options?: CallOptions) => Promise<GetMaintenanceResponse>;
    /** Begin maintenance, replace what was said of it, or end it; in force on all instances within 5 s. `POST /api/v1/maintenance`, role admin */
    setMaintenance: (input: Input<SetMaintenanceData>, options?: CallOptions) => Promise<SetMaintenanceResponse>;
    /** Whether this instance only observes, and why. `GET /api/v1/observing`, role viewer */
    getObserving: (input?: Input<GetObservingData>, options?: CallOptions) => Promise<GetObservingResponse>;
    /** Take over from another installation: fire what was due from a moment on. `POST /api/v1/take-over`, role admin */
    takeOver: (input: Input<TakeOverData>, options?: CallOptions) => Promise<TakeOverResponse>;
    /** Who the caller is to firelock, and what they may do. `GET /api/v1/me` */
    getMe: (input?: Input<GetMeData>, options?: CallOptions) => Promise<GetMeResponse>;
    /** Check on the live database what must always hold. `GET /api/v1/verify`, role operator */
    verify: (input?: Input<VerifyData>, options?: CallOptions) => Promise<VerifyResponse>;
    /** What callers changed, and what they were refused; newest first. `GET /api/v1/audit`, role operator */
    listAudit: (input?: Input<ListAuditData>, options?: CallOptions) => Promise<ListAuditResponse>;
}
