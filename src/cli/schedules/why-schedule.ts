import type { Command } from 'commander';
import { INSTANT, instantText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type { OccurrenceAnswer, Page, RunAnswer, ScheduleAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, moreNote, readPages } from '../server/list-pages.ts';
import { type Server, pathOf } from '../server/server-calls.ts';
import { type Explained, explanationLines } from './why-text.ts';

interface Options extends ListOptions {
  from: string;
  to: string;
}

export function addWhySchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('why')
    .description('what became of each fire of a period, and why')
    .argument('<id>')
    .option('--from <instant>', `inclusive: ${INSTANT}`, '-1d')
    .option('--to <instant>', 'exclusive', 'now')
    .action(async (id: string, { from, to, ...pages }: Options) => {
      const period = {
        from: instantText(from, cli.surroundings),
        to: instantText(to, cli.surroundings),
      };
      const explained = await explain(cli.server(), id, { period, pages });
      const { occurrences, otherRuns, nextCursor, schedule } = explained;
      cli
        .output()
        .show({ schedule, items: occurrences, otherRuns, nextCursor }, (view) => [
          ...explanationLines(explained, view),
          ...moreNote(explained),
        ]);
    });
  withExamples(
    listOptions(command),
    'firelock schedule why invoices',
    'firelock schedule why invoices --from 2030-01-31T00:00:00Z --to 2030-02-01T00:00:00Z',
  );
}

interface Question {
  period: { from: string | undefined; to: string | undefined };
  pages: ListOptions;
}

/** Reads the schedule, its occurrences, and the runs of the period that these cover. */
async function explain(server: Server, id: string, { period, pages }: Question): Promise<Explained> {
  const schedule = (await server.call('GET', pathOf('schedules', id))).body() as ScheduleAnswer;
  const path = pathOf('schedules', id, 'occurrences');
  const found: Page<OccurrenceAnswer> = schedule.after
    ? { items: [], nextCursor: null }
    : await readPages<OccurrenceAnswer>(server, path, period, pages);
  const isWhole = found.nextCursor === null;
  const last = found.items.at(-1)?.fireAt;
  const stretch = isWhole || last === undefined ? period : { from: period.from, to: justAfter(last) };
  const runsPath = pathOf('schedules', id, 'runs');
  const runs = await readPages<RunAnswer>(server, runsPath, stretch, { all: true });
  const byId = new Map(runs.items.map((run) => [run.id, run]));
  const occurrences = found.items.map((occurrence) => ({
    ...occurrence,
    run: byId.get(occurrence.runId ?? '') ?? null,
  }));
  const explained = new Set(found.items.map(({ runId }) => runId));
  const otherRuns = runs.items.filter((run) => !explained.has(run.id)).reverse();
  return { schedule, period, occurrences, otherRuns, nextCursor: found.nextCursor };
}

/** Instants are whole milliseconds. */
function justAfter(instant: string): string {
  return new Date(Date.parse(instant) + 1).toISOString();
}
