import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { labelsText, statusText, triggerText } from './schedule-text.ts';

export function addGetSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('get')
    .description('show a schedule; its JSON can be edited and given back to "schedule set --file"')
    .argument('<id>')
    .action(async (id: string) => {
      const answer = await cli.server().call('GET', pathOf('schedules', id));
      cli.output().show(answer.text, (view) => scheduleLines(answer.body() as ScheduleAnswer, view));
    });
  withExamples(
    command,
    'firelock schedule get invoices',
    'firelock schedule get invoices --json | jq .target',
  );
}

export function scheduleLines(schedule: ScheduleAnswer, view: View): string[] {
  const { id, description, pauseReason, pauseUntil, error, timezone, labels, version } = schedule;
  return view.pairs([
    ['id', id],
    ['description', description],
    ['status', statusText(schedule)],
    ['error', error],
    ['paused because', pauseReason],
    ['paused until', view.time(pauseUntil)],
    ['fires', triggerText(schedule)],
    ['zone', timezone],
    ['next fire', view.time(schedule.nextFireAt)],
    ['last fire', view.time(schedule.lastFireAt)],
    ['target', JSON.stringify(schedule.target)],
    ['payload', schedule.payload === null ? null : JSON.stringify(schedule.payload)],
    ['overlap', schedule.overlap],
    ['catch-up', `${schedule.catchUp}, grace ${schedule.graceSeconds} s`],
    ['retry', JSON.stringify(schedule.retry)],
    ['limit', schedule.limit],
    ['labels', labelsText(labels)],
    ['version', String(version)],
    ['updated', view.time(schedule.updatedAt)],
    ['times', view.zones.replace('times are ', '')],
  ]);
}
