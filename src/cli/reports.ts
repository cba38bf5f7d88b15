import type { Command } from 'commander';
import { type Cli, group, withExamples } from './cli.ts';
import { type Period, periodOf, periodOptions } from './common/arguments.ts';
import type {
  AlertAnswer,
  AuditAnswer,
  CallerAnswer,
  InstanceAnswer,
  Page,
  QueueAnswer,
  StatsAnswer,
  VerifyAnswer,
} from './server/answers.ts';
import { type ListOptions, listOptions, showList } from './server/list-pages.ts';
import type { View } from './terminal/output.ts';
import type { Column } from './terminal/table.ts';
import { durationText } from './terminal/time-text.ts';
import { EXIT } from './exit-codes.ts';
import { pathOf } from './server/server-calls.ts';

export function addQueueCommands(program: Command, cli: Cli): void {
  const queue = group(program, 'queue', 'queues that workers pull from');
  addWholeList<QueueAnswer>(queue, cli, {
    path: 'queues',
    description: 'list queues: what waits in them, and how many workers ask',
    columns: () => [
      { title: 'QUEUE', cell: ({ queue }) => queue, shrinks: true },
      { title: 'PENDING', cell: ({ pending }) => pending, align: 'right' },
      { title: 'LATER', cell: ({ scheduled }) => scheduled, align: 'right' },
      { title: 'RUNNING', cell: ({ running }) => running, align: 'right' },
      {
        title: 'OLDEST',
        cell: ({ oldestPendingSeconds: seconds }) => (seconds === 0 ? null : durationText(seconds * 1000)),
        align: 'right',
      },
      { title: 'WORKERS', cell: ({ workers }) => workers, align: 'right' },
    ],
  });
}

export function addInstanceCommands(program: Command, cli: Cli): void {
  const instance = group(program, 'instance', 'instances: the daemon processes');
  addWholeList<InstanceAnswer>(instance, cli, {
    path: 'instances',
    description: 'list instances, the newest first; the dead stay listed for a day',
    columns: ({ cellTime, paint }) => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'HOST', cell: ({ host }) => host, shrinks: true },
      {
        title: 'ALIVE',
        cell: ({ alive, leftAt }) => (alive ? 'yes' : leftAt ? 'left' : 'no'),
        paint: (text) => paintAlive(text, paint),
      },
      { title: 'IN FLIGHT', cell: ({ inFlight }) => inFlight, align: 'right' },
      { title: 'VERSION', cell: ({ version }) => version, mayGo: true },
      { title: 'PORT', cell: ({ port }) => port ?? '', isExtra: true },
      { title: 'ZONE DATA', cell: ({ zoneData }) => zoneData, isExtra: true },
      { title: 'STARTED', cell: ({ startedAt }) => cellTime(startedAt), isExtra: true },
      { title: 'HEARTBEAT', cell: ({ heartbeatAt }) => cellTime(heartbeatAt) },
    ],
  });
}

function paintAlive(text: string, paint: View['paint']): string {
  return text === 'left' ? text : paint(text === 'yes' ? 'green' : 'red', text);
}

interface WholeList<Row> {
  path: string;
  description: string;
  columns: (view: View) => Column<Row>[];
}

/** For a list that comes in one page. */
function addWholeList<Row>(parent: Command, cli: Cli, { path, description, columns }: WholeList<Row>): void {
  const command = parent
    .command('list')
    .description(description)
    .action(() =>
      cli.show(cli.server().call('GET', path), ({ items }: Page<Row>, view) => [
        ...view.table(columns(view), items),
        view.zoneNote,
      ]),
    );
  withExamples(command, `firelock ${parent.name()} list`);
}

interface AlertOptions extends ListOptions {
  open?: boolean;
  schedule?: string;
}

export function addAlertCommands(program: Command, cli: Cli): void {
  const alert = group(program, 'alert', 'alerts: what is wrong with schedules, and what was');
  const command = alert
    .command('list')
    .description('list alerts, those that broke last first')
    .option('--open', 'only those that are open')
    .option('--schedule <id>', 'about this schedule')
    .action(({ open, schedule, ...pages }: AlertOptions) => {
      const query = { open: open && 'true', scheduleId: schedule };
      return showList(cli, { path: 'alerts', query, pages }, alertColumns);
    });
  withExamples(listOptions(command), 'firelock alert list --open', 'firelock alert list --schedule invoices');
}

function alertColumns(view: View): Column<AlertAnswer>[] {
  return [
    { title: 'SCHEDULE', cell: ({ scheduleId }) => scheduleId, shrinks: true },
    { title: 'KIND', cell: ({ kind }) => kind },
    { title: 'SINCE', cell: ({ since }) => view.cellTime(since) },
    { title: 'UNTIL', cell: ({ until }) => (until === null ? 'open' : view.cellTime(until)) },
    { title: 'RUN', cell: ({ runId }) => runId, isExtra: true },
    { title: 'ERROR', cell: ({ error }) => error, shrinks: true },
  ];
}

interface AuditOptions extends ListOptions, Period {
  by?: string;
  action?: string;
  schedule?: string;
}

export function addAudit(program: Command, cli: Cli): void {
  const command = program
    .command('audit')
    .description('who did what: every call that changed something, and every one that was refused')
    .option('--by <name>', 'of the token with this name')
    .option('--action <action,…>', 'such as schedule.update, run.retry, maintenance.on')
    .option('--schedule <id>', 'about this schedule')
    .action(({ by, action, schedule, from, to, ...pages }: AuditOptions) => {
      const period = periodOf({ from, to }, cli.surroundings);
      const query = { by, action, scheduleId: schedule, ...period };
      return showList(cli, { path: 'audit', query, pages }, auditColumns);
    });
  withExamples(
    listOptions(periodOptions(command, '')),
    'firelock audit --schedule invoices --from -7d',
    'firelock audit --by ci --action schedule.update,schedule.delete',
  );
}

function auditColumns(view: View): Column<AuditAnswer>[] {
  return [
    { title: 'AT', cell: ({ at }) => view.cellTime(at) },
    { title: 'BY', cell: ({ by }) => by, shrinks: true },
    { title: 'ROLE', cell: ({ role }) => role, isExtra: true },
    { title: 'ACTION', cell: ({ action }) => action },
    { title: 'SUBJECT', cell: ({ subject }) => subjectText(subject), shrinks: true },
    { title: 'OUTCOME', cell: ({ outcome }) => outcome },
    { title: 'DETAIL', cell: ({ detail }) => subjectText(detail), shrinks: true },
  ];
}

function subjectText(value: unknown): string {
  return typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value);
}

interface StatsOptions extends Period {
  schedule?: string;
}

export function addStats(program: Command, cli: Cli): void {
  const command = program
    .command('stats')
    .description('how many runs ended how, and how late they were')
    .option('--schedule <id>', 'of this schedule only')
    .action(({ schedule, ...period }: StatsOptions) => {
      const query = periodOf(period, cli.surroundings);
      const path = schedule === undefined ? 'stats' : pathOf('schedules', schedule, 'stats');
      return cli.show(cli.server().call('GET', path, { query }), statsLines);
    });
  withExamples(periodOptions(command), 'firelock stats --from -1d', 'firelock stats --schedule invoices');
}

function statsLines({ lateness, successRate, ...stats }: StatsAnswer, view: View): string[] {
  const { p50Ms, p95Ms, p99Ms, maxMs } = lateness;
  return view.pairs([
    ['runs', String(stats.totalRuns)],
    ['succeeded', String(stats.succeededRuns)],
    ['failed', String(stats.failedRuns)],
    ['unknown', String(stats.unknownRuns)],
    ['abandoned', String(stats.abandonedRuns)],
    ['skipped', String(stats.skippedRuns)],
    ['cancelled', String(stats.cancelledRuns)],
    ['open', String(stats.openRuns)],
    ['lost', `${stats.lostRuns}, of which recovered: ${stats.recoveredRuns}`],
    ['success rate', successRate === null ? null : `${(successRate * 100).toFixed(2)} %`],
    [
      'late by',
      maxMs === null
        ? null
        : `${durationText(p50Ms)} (median), ${durationText(p95Ms)} (p95), ${durationText(p99Ms)} (p99), ${durationText(maxMs)} (most)`,
    ],
  ]);
}

export function addMe(program: Command, cli: Cli): void {
  const command = program
    .command('me')
    .description('show your name and role at the server')
    .action(() => {
      const server = cli.server();
      return cli.show(server.call('GET', 'me'), ({ name, role }: CallerAnswer) => [
        `${name ?? 'anonymous (the server requires no token)'}, ${role}, at ${server.url}`,
      ]);
    });
  withExamples(command, 'FIRELOCK_URL=https://cron.example.com firelock me');
}

export function addVerify(program: Command, cli: Cli): void {
  const command = program
    .command('verify')
    .description('check the live database for broken promises; exit code 1: a check failed, or could not be completed')
    .action(async () => {
      const asked = cli.server().call('GET', 'verify');
      await cli.show(asked, ({ checks }: VerifyAnswer, view) => [
        ...view.table<Check>(
          [
            { title: 'CHECK', cell: ({ name }) => name },
            {
              title: 'VIOLATIONS',
              cell: countOf,
              align: 'right',
              paint: (text, paint) => (text === '0' ? text : paint('red', text)),
            },
            { title: 'WHAT HOLDS', cell: ({ holds }) => holds, shrinks: true },
          ],
          checks,
        ),
        ...checks.flatMap(({ name, examples }) => examples.map((example) => `${name}: ${example}`)),
      ]);
      const { ok } = (await asked).body() as VerifyAnswer;
      cli.exitCode = ok ? EXIT.done : EXIT.failed;
    });
  withExamples(command, 'firelock verify', 'firelock verify --json | jq -e .ok');
}

type Check = VerifyAnswer['checks'][number];

function countOf({ complete, violations }: Check): string {
  return complete ? String(violations) : 'not known';
}
