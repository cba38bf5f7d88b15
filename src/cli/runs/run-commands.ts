import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import {
  type FilterInPeriod,
  filterOf,
  filterOptions,
  jsonIn,
  numberOrText,
  periodOf,
  periodOptions,
} from '../common/arguments.ts';
import { type BulkOptions, actOnMatching, bulkOptions } from '../common/changes.ts';
import type { BatchAnswer, RunAnswer, SubmittedAnswer, WholeRunAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { paintStatus } from '../terminal/shown-text.ts';
import type { Column } from '../terminal/table.ts';
import { durationText } from '../terminal/time-text.ts';
import { addRunLog } from './log-command.ts';
import { errorText, labelsText, runText, underWayText } from './run-text.ts';
import { addTailRuns } from './tail-runs.ts';

export function addRunCommands(program: Command, cli: Cli): void {
  const run = group(program, 'run', 'runs: what became of each fire');
  addList(run, cli);
  addGetRun(run, cli);
  addRunLog(run, cli);
  addTailRuns(run, cli);
  addSubmitRuns(run, cli);
  addBatchCommands(program, cli);
  addAction(run, cli, 'retry', 'send an ended run again, under its id');
  addAction(run, cli, 'cancel', 'end a run that has not ended');
  addBulk(run, cli);
}

interface RunListOptions extends FilterInPeriod, ListOptions {
  key?: string;
}

function addList(parent: Command, cli: Cli): void {
  const command = filterOptions(parent.command('list').description('list runs, the newest first'))
    .option('--key <key>', 'with this idempotency key')
    .action((options: RunListOptions) => {
      const { key } = options;
      const query = { ...filterOf(options), ...periodOf(options, cli.surroundings), key };
      return showList(cli, { path: 'runs', query, pages: options }, columnsOf);
    });
  withExamples(
    listOptions(periodOptions(command)),
    'firelock run list --schedule invoices --limit 5',
    'firelock run list --status failed,unknown --from -1d --json | jq -r ".items[].id"',
  );
}

function columnsOf(view: View): Column<RunAnswer>[] {
  return [
    { title: 'RUN', cell: ({ id }) => id },
    { title: 'SCHEDULE', cell: ({ scheduleId }) => scheduleId, shrinks: true },
    { title: 'SCHEDULED FOR', cell: ({ scheduledFor }) => view.cellTime(scheduledFor) },
    { title: 'STATUS', cell: (run) => statusText(run, view), paint: paintStatus },
    { title: 'TRIGGER', cell: ({ trigger }) => trigger, mayGo: true },
    { title: 'REASON', cell: ({ reason }) => reason, isExtra: true },
    { title: 'ATTEMPTS', cell: ({ attempts }) => attempts, align: 'right', mayGo: true },
    { title: 'LATE', cell: ({ latenessMs }) => durationText(latenessMs), align: 'right', mayGo: true },
    { title: 'ENDED', cell: ({ finishedAt }) => view.cellTime(finishedAt), isExtra: true },
    { title: 'ERROR', cell: errorText, shrinks: true, mayGo: true },
  ];
}

function statusText(run: RunAnswer, view: View): string {
  const underWay = underWayText(run, (at) => view.cellTime(at));
  return underWay === null ? run.status : `${run.status}, ${underWay}`;
}

function addAction(parent: Command, cli: Cli, verb: 'retry' | 'cancel', description: string): void {
  const command = parent.command(verb).description(description).argument('<id>');
  if (verb === 'retry') command.option('--dependents', 'also the runs that failed for want of it, down the graph');
  command.action((id: string, { dependents }: { dependents?: true }) =>
    cli.show(
      cli.server().call('POST', pathOf('runs', id, verb), dependents ? { body: { dependents } } : {}),
      ({ status }: RunAnswer) => [`run ${id} is ${status}`],
    ),
  );
  withExamples(command, `firelock run ${verb} 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60`);
}

interface BulkRunOptions extends FilterInPeriod, BulkOptions {
  limit?: string;
}

function addBulk(parent: Command, cli: Cli): void {
  const bulk = group(parent, 'bulk', 'retry or cancel all runs that match');
  const add = (action: 'retry' | 'cancel', verb: string, description: string) => {
    const command = periodOptions(filterOptions(bulk.command(action).description(description))).option(
      '--limit <n>',
      'at most so many in one call (default: 1000)',
    );
    return bulkOptions(command).action((options: BulkRunOptions) => {
      const filter = { ...filterOf(options), ...periodOf(options, cli.surroundings) };
      const body = { action, filter, limit: numberOrText(options.limit) };
      return actOnMatching(cli, { path: 'runs/bulk', verb, noun: 'runs', body }, options);
    });
  };
  withExamples(
    add('retry', 'Retry', 'send all ended runs again that match'),
    'firelock run bulk retry --schedule invoices --status failed --from -1d --dry-run',
    'firelock run bulk retry --label team:billing --status failed,unknown --all --yes',
  );
  withExamples(
    add('cancel', 'Cancel', 'end all open runs that match'),
    'firelock run bulk cancel --schedule invoices --status waiting,pending --yes',
  );
}

function addGetRun(parent: Command, cli: Cli): void {
  const command = parent
    .command('get <id>')
    .description('show a run and its attempts')
    .action((id: string) => cli.show(cli.server().call('GET', pathOf('runs', id)), runLines));
  withExamples(command, 'firelock run get 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60');
}

function runLines(run: WholeRunAnswer, view: View): string[] {
  const { attemptLog, result, payload } = run;
  return [
    ...view.pairs([
      ['id', run.id],
      ['name', run.name],
      ['schedule', run.scheduleId],
      ['scheduled for', view.time(run.scheduledFor)],
      ['trigger', run.trigger],
      ['status', runText(run, view)],
      ['execution', run.executionId],
      ['key', run.key],
      ['batch', run.batchId === null ? null : `${run.batchId} (${run.ref ?? ''})`],
      ['labels', labelsText(run.labels)],
      ['queue', run.queue],
      ['limit', run.limit],
      ['target', JSON.stringify(run.target)],
      ['payload', payload === null ? null : JSON.stringify(payload)],
      ['result', result === null ? null : `${result.statusCode ?? 'reported'} ${result.body}`],
      ['created', view.time(run.createdAt)],
      ['handed off', view.time(run.handedOffAt)],
    ]),
    ...(attemptLog.length === 0 ? [] : attemptLines(attemptLog, view)),
    view.zones,
  ];
}

function attemptLines(attempts: WholeRunAnswer['attemptLog'], view: View): string[] {
  return view.table(
    [
      { title: 'ATTEMPT', cell: ({ attempt }) => attempt, align: 'right' },
      { title: 'STARTED', cell: ({ startedAt }) => view.cellTime(startedAt) },
      { title: 'ENDED', cell: ({ finishedAt }) => view.cellTime(finishedAt), isExtra: true },
      { title: 'OUTCOME', cell: ({ outcome, recovery }) => (recovery ? `${outcome}, taken over` : outcome) },
      { title: 'CODE', cell: ({ statusCode }) => statusCode, align: 'right' },
      { title: 'INSTANCE', cell: ({ instanceId }) => instanceId, isExtra: true },
      { title: 'ERROR', cell: ({ error = null }) => errorText({ error }), shrinks: true },
    ],
    attempts,
  );
}

function addSubmitRuns(parent: Command, cli: Cli): void {
  const command = parent
    .command('submit')
    .description('have something done once: a run of no schedule, or many that depend on each other')
    .requiredOption(
      '--file <file>',
      'JSON, as POST /runs takes it, or with items as POST /runs/batch (-: standard input)',
    )
    .action(async ({ file }: { file: string }) => {
      const body = await jsonIn(file, cli.surroundings);
      const sent: unknown = JSON.parse(body.text);
      const isBatch = typeof sent === 'object' && sent !== null && 'items' in sent;
      const call = cli.server().call('POST', isBatch ? 'runs/batch' : 'runs', { body });
      await cli.show(call, (answer: RunAnswer | SubmittedAnswer) =>
        'batchId' in answer && 'items' in answer ? submittedLines(answer) : [`run ${answer.id} is ${answer.status}`],
      );
    });
  withExamples(
    command,
    'firelock run submit --file etl.json',
    'echo \'{"target": {"type": "pull", "queue": "reports"}}\' | firelock run submit --file -',
  );
}

function submittedLines({ batchId, items }: SubmittedAnswer): string[] {
  return [`batch ${batchId ?? 'none'}: ${items.length} runs`, ...items.map(({ ref, id }) => `${ref} ${id}`)];
}

function addBatchCommands(program: Command, cli: Cli): void {
  const batch = group(program, 'batch', 'runs that were submitted together');
  const command = batch
    .command('get <id>')
    .description('show the runs of a batch, how each stands, and what it waits for')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf('batches', id)), (found: BatchAnswer, view) => [
        ...view.pairs([
          ['id', found.id],
          ['name', found.name],
          ['labels', labelsText(found.labels)],
          ['created', view.time(found.createdAt)],
        ]),
        ...view.table(
          [
            { title: 'REF', cell: ({ ref }) => ref },
            { title: 'STATUS', cell: ({ status }) => status, paint: paintStatus },
            { title: 'RUN', cell: ({ id: run }) => run },
            { title: 'DEPENDS ON', cell: ({ dependsOn }) => dependsOn.join(', '), shrinks: true },
          ],
          found.items,
        ),
        view.zones,
      ]),
    );
  withExamples(command, 'firelock batch get 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60');
}
