import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { usageError, failure } from '../exit-codes.ts';
import type { RunAnswer, Page } from '../server/answers.ts';
import { wholeNumber } from '../server/list-pages.ts';
import type { Output } from '../terminal/output.ts';
import { paintStatus, printable } from '../terminal/shown-text.ts';
import { type RunFilterOptions, filterOf, filterOptions } from '../common/arguments.ts';
import { runText } from './run-text.ts';
import { patient } from '../common/patience.ts';
import { isoInstant } from '../../core/instant.ts';
import { type Query, type Server, pathOf } from '../server/server-calls.ts';

interface Options extends RunFilterOptions {
  last: number;
  count?: number;
  interval: string;
}

export function addTailRuns(parent: Command, cli: Cli): void {
  const command = filterOptions(
    parent
      .command('tail')
      .description('follow runs: a line when one comes due, and one whenever its status changes, until Ctrl-C'),
  )
    .option('--last <n>', 'begin with so many of the last five minutes', wholeNumber, 10)
    .option('--count <n>', 'end after so many lines', wholeNumber)
    .option('--interval <seconds>', 'how often to ask', '2')
    .action((options: Options) => tail(cli, options));
  withExamples(
    command,
    'firelock run tail --label team:billing',
    'firelock run tail --status failed,unknown --json | while read -r run; do echo "$run"; done',
  );
}

async function tail(cli: Cli, { last, count = Infinity, interval, ...filter }: Options): Promise<void> {
  const { signal } = cli.surroundings;
  const intervalMs = Number(interval) * 1000;
  if (!(intervalMs > 0 && intervalMs <= MAX_MS)) throw usageError('--interval must be 0.01 to 3600 seconds');
  const output = cli.output();
  const follower = createFollower(cli.server(), filterOf(filter));
  let printed = 0;
  const print = (runs: readonly RunAnswer[]) => {
    const shown = runs.slice(0, count - printed);
    for (const run of shown) printRun(run, output);
    printed += shown.length;
  };
  try {
    print((await follower.begin()).slice(-last));
    const ask = patient(() => follower.news(), output);
    while (printed < count) {
      await delay(intervalMs, undefined, { signal });
      print((await ask()) ?? []);
    }
  } catch (error) {
    // A user ends the command by Ctrl-C.
    if (!signal.aborted) throw error;
  }
}

const MAX_MS = 3_600_000;

function printRun(run: RunAnswer, output: Output): void {
  output.line(run, (view) => {
    const { status, scheduleId, scheduledFor, id } = run;
    return [
      view.time(scheduledFor),
      [paintStatus(status, view.paint), ' '.repeat(Math.max(0, STATUS_WIDTH - status.length))].join(''),
      scheduleId ?? 'one-off run',
      printable(
        runText(run, view)
          .slice(status.length)
          .replace(/^[, ]+/, ''),
      ),
      id,
    ]
      .filter((part) => part !== '')
      .join('  ');
  });
}

const STATUS_WIDTH = 'succeeded'.length;

interface Follower {
  /** The runs that have come due lately, the oldest first. */
  begin(): Promise<RunAnswer[]>;
  /** Runs that have come due since, and runs whose status has changed. */
  news(): Promise<RunAnswer[]>;
}

/** How far back it looks for runs, by their due time: a run may be recorded later than it was due. */
const WINDOW_MS = 300_000;
/** The server's clock comes in whole seconds. */
const AHEAD_MS = 2000;
const PAGE = 500;
/** The most pages of one look; without a filter, so many runs may come due in five minutes. */
const MAX_PAGES = 40;
/** Open runs that are older than the window are read one by one, at most this many in one look. */
const MAX_ASKED = 20;

function createFollower(server: Server, filter: Query): Follower {
  /** The last known state of each run that is open, or within the window. */
  const known = new Map<string, RunAnswer>();
  let now = 0;
  const look = async (): Promise<RunAnswer[]> => {
    const from = now - WINDOW_MS;
    const found = await recent(server, { ...filter, from: isoInstant(from), to: isoInstant(now + AHEAD_MS) });
    now = found.now ?? now;
    // If a run now has a status that was not asked for, it is left out from now on.
    const others = filter['status'] === undefined ? await older(server, known, found.runs) : [];
    const runs = [...found.runs, ...others];
    const news = runs.filter((run) => known.get(run.id)?.status !== run.status);
    for (const run of runs) known.set(run.id, run);
    for (const [id, run] of known) if (hasEnded(run) && Date.parse(run.scheduledFor) < from) known.delete(id);
    return news.sort(byMoment);
  };
  return {
    begin: async () => {
      // Also checks at once whether the token allows the call.
      const { date } = await server.call('GET', 'me');
      if (date === null) throw failure(`the answers of ${server.url} have no Date header`);
      now = date;
      return look();
    },
    news: look,
  };
}

async function recent(server: Server, query: Query): Promise<{ runs: RunAnswer[]; now: number | null }> {
  const runs: RunAnswer[] = [];
  let cursor: string | null = null;
  let now: number | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const asked: Query = { ...query, limit: PAGE, cursor: cursor ?? undefined };
    const answer = await server.call('GET', 'runs', { query: asked });
    const page = answer.body() as Page<RunAnswer>;
    now ??= answer.date;
    runs.push(...page.items);
    cursor = page.nextCursor ?? null;
    if (cursor === null) return { runs, now };
  }
  throw failure('too many runs come due to follow them all; narrow them down with --schedule or --label');
}

async function older(
  server: Server,
  known: ReadonlyMap<string, RunAnswer>,
  found: readonly RunAnswer[],
): Promise<RunAnswer[]> {
  const ids = new Set(found.map(({ id }) => id));
  const missing = [...known.values()].filter((run) => !hasEnded(run) && !ids.has(run.id));
  const asked: RunAnswer[] = [];
  for (const { id } of missing.slice(0, MAX_ASKED)) {
    const answer = await server.find(pathOf('runs', id));
    if (answer !== null) asked.push(answer.body() as RunAnswer);
  }
  return asked;
}

function hasEnded({ status }: RunAnswer): boolean {
  return !['waiting', 'pending', 'running'].includes(status);
}

function byMoment(one: RunAnswer, other: RunAnswer): number {
  return one.scheduledFor.localeCompare(other.scheduledFor) || one.id.localeCompare(other.id);
}
