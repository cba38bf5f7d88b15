import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { StatsAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { durationText } from '../terminal/time-text.ts';

interface Options {
  schedule?: string;
  from?: string;
  to?: string;
}

export function addStats(program: Command, cli: Cli): void {
  const command = program
    .command('stats')
    .description('how many runs ended how, and how late they were')
    .option('--schedule <id>', 'of this schedule only')
    .option('--from <instant>', `scheduled for then or later: ${INSTANT}`)
    .option('--to <instant>', 'scheduled for earlier than that')
    .action(async ({ schedule, from, to }: Options) => {
      const { surroundings } = cli;
      const query = { from: instantText(from, surroundings), to: instantText(to, surroundings) };
      const path = schedule === undefined ? 'stats' : pathOf('schedules', schedule, 'stats');
      const answer = await cli.server().call('GET', path, { query });
      cli.output().show(answer.text, (view) => statsLines(answer.body() as StatsAnswer, view));
    });
  withExamples(command, 'firelock stats --from -1d', 'firelock stats --schedule invoices');
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
