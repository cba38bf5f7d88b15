import type { Examples } from './example.ts';

const job = (name: string) => ({ type: 'http', url: `https://example.com/jobs/${name}` });
const nothing: Examples = { nothing: { summary: 'There is nothing to say', value: {} } };

export const RUN_EXAMPLES: Readonly<Record<string, Examples>> = {
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
        items: [
          { ref: 'extract', target: job('extract'), payload: { day: '2026-11-20' } },
          { ref: 'load', target: job('load'), dependsOn: ['extract'] },
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
  completeRun: {
    succeeded: {
      summary: 'It is done',
      value: { attempt: 1, workerId: 'reports-7', status: 'succeeded', result: { rows: 1200 } },
    },
    failed: {
      summary: 'It failed, and is not tried again',
      value: { attempt: 1, workerId: 'reports-7', status: 'failed', error: 'No data' },
    },
  },
  cancelRun: nothing,
  retryRun: nothing,
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
