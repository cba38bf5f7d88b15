import { COUNTS, type Step } from './run-steps.ts';

/** Long tests of what nothing else in CI looks at. */
const LONG_IN_CI = [
  // Faults while fires go on, each gap of the protocol, and whether the checkers see.
  ...['short', 'faults/failpoints', 'graph/graph', 'mutants/caught'].map((name) => `test/chaos/${name}.test.ts`),
  // What a team sees of another one's, at every route; the dashboard in a browser.
  ...['test/api/scopes/walk.test.ts', 'test/web'],
  // Receivers and workers in all languages; the command that works.
  ...['other-languages', 'vectors', 'worker'].map((name) => `test/client/${name}.test.ts`),
  'test/cli/work',
  // What takes a fourth of the processor's time, and breaks seldom: whole daemons and programs; and what is very much.
  ...['examples', 'local-postgres', 'docs', 'daemon/access', 'daemon/secrets', 'flow/backlogs'].map(
    (name) => `test/${name}`,
  ),
  ...[
    ...['background', 'debian-cron', 'hostile-lane', 'shutdown', 'traces', 'verify'].map((name) => `daemon/${name}`),
    ...['attacks/unread-answers', 'attacks/every-route', 'api/http/pages', 'recovery/hostile-rows'],
    ...['postgres/connection/hosts', 'postgres/dump', 'store/alerts/messages', 'flow/calendar-walks'],
    'flow/effects/effects-in-parts',
    ...['bulk', 'calendars', 'limits', 'maintenance', 'pauses', 'resume', 'schedules-file', 'skips'].map(
      (name) => `daemon/schedules/${name}`,
    ),
  ].map((name) => `test/${name}.test.ts`),
];

const chartTools: Step = {
  ...node('chart-tools', 'scripts/python-tools.ts', 'firelock-chart-tools', 'test/deploy/chart-tools.txt'),
  needs: 'python3 with venv',
};
const release: Step[] = [
  // Builds what the two after it take.
  npm('release'),
  { ...tallied('smoke'), after: ['release'] },
  { ...tallied('release:check'), after: ['release'] },
];

/** What every change has to pass: `.ci/run`. It installs what these need. */
export const CI_STEPS: readonly Step[] = [
  chartTools,
  npm('check'),
  // What talks to the database, on the oldest PostgreSQL that is supported; npm brings it.
  { ...tests('test'), env: { FIRELOCK_TEST_POSTGRES: '14' } },
  tests('test:long', ...LONG_IN_CI),
  tallied('spec', '--quick'),
  ...release,
];

/** All that there is, in a night: `npm run verify:all`. */
export const ALL_STEPS: readonly Step[] = [
  chartTools,
  npm('check'),
  tests('test'),
  tests('test:long'),
  tests('test:time'),
  {
    ...tests('test:long', 'test/daemon/debian-cron.test.ts'),
    ...{ name: 'cron:minutes', env: { FIRELOCK_TEST_CRON_RATE: '1' } },
  },
  { ...tallied('spec'), needs: 'spin and gcc' },
  ...release,
  { ...tallied('release:rehearse'), after: ['release'] },
  { ...tallied('image:check'), needs: 'podman and a runtime that starts containers here' },
  tallied('upgrade-drill'),
  { ...tallied('clients:check'), needs: 'Go 1.26 and Python 3.11' },
  {
    ...node('schemathesis-tools', 'scripts/python-tools.ts', 'schemathesis', 'test/schemathesis/requirements.txt'),
    needs: 'python3 with venv',
  },
  { ...tallied('schemathesis'), needs: 'schemathesis' },
  npm('mutants:days'),
  npm('chaos'),
  npm('chaos:graph'),
  npm('chaos:isolation'),
  { ...npm('chaos', '--mutants'), name: 'chaos:mutants' },
  { ...npm('failover', '--replication=sync'), name: 'failover:sync', needs: 'patroni, etcd and haproxy' },
  { ...npm('failover', '--replication=async'), name: 'failover:async', needs: 'patroni, etcd and haproxy' },
  { ...tests('test:pgbouncer'), needs: 'pgbouncer' },
  tallied('test:postgres', '14', '15', '16', '17'),
];

function npm(script: string, ...words: string[]): Step {
  return {
    name: script,
    command: ['npm', 'run', '--silent', script, ...(words.length > 0 ? ['--', ...words] : [])],
  };
}

/** Scripts that write `{"passed": N, "failed": M}` where `--report` says. */
function tallied(script: string, ...words: string[]): Step {
  return { ...npm(script, `--report=${COUNTS}`, ...words), counts: true };
}

/** Scripts that hand their words to vitest. */
function tests(script: string, ...words: string[]): Step {
  const reporters = ['default', './test/support/runner/summary.ts', 'json'].map((name) => `--reporter=${name}`);
  return { ...npm(script, ...reporters, `--outputFile.json=${COUNTS}`, ...words), counts: true };
}

function node(name: string, ...words: string[]): Step {
  return { name, command: [process.execPath, ...words] };
}
