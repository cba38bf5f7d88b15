import type { Command } from 'commander';
import { type Period, periodOf, periodOptions } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { CallerAnswer, StatsAnswer, VerifyAnswer } from '../server/answers.ts';
import { EXIT } from '../exit-codes.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { durationText } from '../terminal/time-text.ts';

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
    .description(
      'check the live database for broken promises; exit code 1: a check failed, or could not be completed',
    )
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
