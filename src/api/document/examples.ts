import { CALENDARS, CONNECTIONS, type Examples, LIMITS, NOTIFIERS } from './settings-examples.ts';

const job = (name: string) => ({ type: 'http', url: `https://example.com/jobs/${name}` });
const nothing: Examples = { nothing: { summary: 'There is nothing to say', value: {} } };

const target = { type: 'http', url: 'https://example.com/jobs/nightly' } as const;

/** The last one is what a reader finds there in the end, and what fires at two in the morning in Berlin. */
const SCHEDULES: Examples = {
  interval: {
    summary: 'By interval: every quarter of an hour',
    value: { everySeconds: 900, target, timeoutSeconds: 60 },
  },
  endpoint: {
    summary: 'To an endpoint with a body of its own, and its own idea of success',
    value: {
      cron: '55 8 * * MON-FRI',
      target: {
        type: 'http',
        url: 'https://chat.example.com/hooks/standup',
        body: { template: '{"text": "Stand-up: {{payload/title}} ({{scheduledFor}})"}' },
        outcome: { succeed: [409], require: { pointer: '/ok', equals: true } },
      },
      payload: { title: 'in five minutes' },
    },
  },
  once: {
    summary: 'Once, at a moment',
    value: { at: '2099-12-31T23:00:00+01:00', target, payload: { century: 21 } },
  },
  after: {
    summary: 'After runs of other schedules: report failures',
    value: {
      after: { scheduleId: '*', on: ['failed', 'unknown', 'abandoned'] },
      target: { type: 'http', url: 'https://example.com/notify' },
    },
  },
  pull: {
    summary: 'For workers that pull: nothing is sent',
    value: { cron: '@hourly', target: { type: 'pull', queue: 'reports' }, completionTimeoutSeconds: 600 },
  },
  list: {
    summary: 'By several cron expressions',
    value: { cron: ['0 9 * * MON-FRI', '0 11 * * SAT'], timezone: 'Europe/Berlin', target },
  },
  whole: {
    summary: 'By cron expression, with what else there is to say',
    value: {
      description: 'The nightly report',
      cron: '0 2 * * *',
      timezone: 'Europe/Berlin',
      exclude: { dates: ['2026-12-24/2027-01-02'] },
      target: {
        type: 'http',
        url: 'https://example.com/jobs/nightly?run={{runId}}',
        headers: { 'X-Team': 'billing' },
        lookup: { url: 'https://example.com/jobs/nightly/{{runId}}' },
        cancel: { url: 'https://example.com/jobs/nightly/{{runId}}/cancel' },
      },
      payload: { report: 'daily' },
      catchUp: 'latest',
      overlap: 'skip',
      retry: { maxAttempts: 3, minBackoffSeconds: 30, maxBackoffSeconds: 600 },
      completion: 'callback',
      pauseAfterFailures: 5,
      labels: { team: 'billing' },
    },
  },
  cron: {
    summary: 'By cron expression: every night at two',
    value: { cron: '0 2 * * *', timezone: 'Europe/Berlin', target, labels: { team: 'billing' } },
  },
};

const skip = { fireAt: '2099-12-25T01:00:00Z' };

/** Whole bodies, by `operationId`. A test sends them in this order to an empty firelock: each works as it stands. */
export const EXAMPLES: Readonly<Record<string, Examples>> = {
  putCalendar: CALENDARS,
  tryCalendar: CALENDARS,
  putConnection: CONNECTIONS,
  tryConnection: CONNECTIONS,
  putNotifier: NOTIFIERS,
  tryNotifier: NOTIFIERS,
  putLimit: LIMITS,
  tryLimit: LIMITS,
  setMaintenance: {
    on: { summary: 'Begin', value: { on: true, reason: 'The warehouse database moves' } },
    hold: { summary: 'Begin, and hand nothing off either', value: { on: true, dispatch: 'hold' } },
    off: { summary: 'End', value: { on: false } },
  },
  takeOver: {
    since: { summary: 'From a moment on', value: { since: '2025-11-20T15:12:00Z' } },
  },
  previewFires: {
    cron: { summary: 'A cron expression', value: { cron: '30 2 * * *', timezone: 'Europe/Berlin' } },
    list: {
      summary: 'Several cron expressions',
      value: { cron: ['0 9 * * MON-FRI', '0 11 * * SAT'], timezone: 'Europe/Berlin', count: 5 },
    },
    interval: { summary: 'An interval', value: { everySeconds: 900 } },
    lastWeekday: {
      summary: 'On the last day of each month that is no weekend',
      value: { cron: '0 18 * * *', exclude: { weekdays: ['sat', 'sun'] }, pick: { of: 'month', nth: [-1] } },
    },
  },
  putSchedule: SCHEDULES,
  patchSchedule: {
    pause: {
      summary: 'Pause, until a moment',
      value: { enabled: false, pauseReason: 'The warehouse moves', pauseUntil: '2099-01-01T00:00:00Z' },
    },
    resume: { summary: 'Resume', value: { enabled: true } },
    kind: {
      summary: 'Another kind: the interval takes the place of the expression',
      value: { everySeconds: 900, labels: { team: null } },
    },
    back: { summary: 'Another time, and a label', value: { cron: '0 2 * * *', labels: { team: 'billing' } } },
  },
  putSchedules: {
    dryRun: {
      summary: 'What would change',
      value: { items: [{ id: 'hourly', cron: '@hourly', target }], dryRun: true },
    },
    two: {
      summary: 'Two schedules, both or none',
      value: {
        items: [
          { id: 'hourly', cron: '@hourly', target },
          { id: 'weekly', cron: '0 6 * * MON', timezone: 'Europe/Berlin', target },
        ],
      },
    },
  },
  actOnSchedules: {
    dryRun: {
      summary: 'How many would be paused',
      value: { action: 'pause', filter: { label: ['team:billing'] }, dryRun: true },
    },
    pause: {
      summary: 'Pause those with a label',
      value: { action: 'pause', filter: { label: 'team:billing' }, reason: 'The warehouse moves' },
    },
    resume: { summary: 'Resume them', value: { action: 'resume', filter: { label: 'team:billing' } } },
  },
  fireSchedule: {
    own: { summary: 'With its own payload', value: {} },
    other: { summary: 'With another payload', value: { payload: { report: 'daily', again: true } } },
  },
  skipFire: {
    christmas: { summary: 'One fire', value: { ...skip, reason: 'Closed for Christmas' } },
  },
  unskipFire: { christmas: { summary: 'It is made after all', value: skip } },
  backfillSchedule: {
    day: {
      summary: 'The fires of three days',
      value: { from: '2025-01-01T00:00:00Z', to: '2025-01-04T00:00:00Z' },
    },
  },
  createRun: {
    now: {
      summary: 'Now, and only once for this key',
      value: { target: job('invoice'), payload: { invoice: 4711 }, key: 'invoice-4711' },
    },
    later: {
      summary: 'At a moment, and never twice',
      value: { target: job('reminder'), runAt: '2099-06-01T08:00:00+02:00', delivery: 'atMostOnce' },
    },
    pull: {
      summary: 'For a worker that pulls',
      value: { target: { type: 'pull', queue: 'reports' }, payload: { report: 'daily' }, priority: 'high' },
    },
  },
  createRuns: {
    pipeline: {
      summary: 'Three that depend on each other',
      value: {
        name: 'etl 2026-11-20',
        labels: { team: 'billing' },
        items: [
          { ref: 'extract', target: job('extract'), payload: { day: '2026-11-20' } },
          { ref: 'load', target: job('load'), dependsOn: ['extract'], labels: { step: 'load' } },
          { ref: 'tell', target: job('tell'), dependsOn: ['load'], onDependencyFailure: 'run' },
        ],
      },
    },
  },
  claimRuns: {
    claim: {
      summary: 'Work for a minute, if there is any',
      value: { workerId: 'reports-7', max: 10, leaseSeconds: 60, waitSeconds: 0 },
    },
  },
  heartbeatRun: {
    alive: { summary: 'It goes on', value: { attempt: 1, workerId: 'reports-7' } },
    progress: { summary: 'A quarter is done', value: { attempt: 1, workerId: 'reports-7', progress: 0.25 } },
  },
  appendRunLog: { lines: { summary: 'Its first lines', value: 'connected\nread 120 rows\n' } },
  completeRun: {
    succeeded: {
      summary: 'It is done',
      value: { attempt: 1, workerId: 'reports-7', status: 'succeeded', result: { rows: 1200 } },
    },
    failed: {
      summary: 'It failed, and is not tried again',
      value: { attempt: 1, workerId: 'reports-7', status: 'failed', error: 'No data' },
    },
    forNow: {
      summary: 'It failed for now',
      value: { attempt: 1, workerId: 'reports-7', status: 'failed', retry: true, error: 'The disk is full' },
    },
  },
  pingWithText: { done: { summary: 'What it has done', value: '{"rows": 1200}' } },
  pingWordWithText: { start: { summary: 'It begins', value: 'by hand' } },
  checkInWithText: { done: { summary: 'What it has done', value: '1200 rows' } },
  releaseRun: {
    unbegun: { summary: 'Another worker may have it', value: { attempt: 1, workerId: 'reports-7' } },
  },
  cancelRun: nothing,
  retryRun: {
    dependents: { summary: 'With what failed for want of it', value: { dependents: true } },
  },
  actOnRuns: {
    dryRun: {
      summary: 'How many would be tried again',
      value: {
        action: 'retry',
        filter: { scheduleId: 'nightly-report', status: 'failed,unknown' },
        dryRun: true,
      },
    },
    cancel: {
      summary: 'Cancel what waits',
      value: { action: 'cancel', filter: { scheduleId: 'nightly-report', status: ['waiting', 'pending'] } },
    },
  },
};
