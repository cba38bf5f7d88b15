import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import type { WholeRunAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { errorText, runText } from './run-text.ts';
import { labelsText } from './submit-runs.ts';

export function addGetRun(parent: Command, cli: Cli): void {
  const command = parent
    .command('get')
    .description('show a run and its attempts')
    .argument('<id>')
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
