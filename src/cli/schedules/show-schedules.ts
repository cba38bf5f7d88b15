import type { Command } from 'commander';
import { dayRulesInWords } from '../../core/describe/describe-days.ts';
import { type Cli, withExamples } from '../cli.ts';
import { type Period, collect, INSTANT, periodOf } from '../common/arguments.ts';
import type { ObservedAnswer, ScheduleAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { labelsText } from '../runs/run-text.ts';
import { pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';
import { paintStatus } from '../terminal/shown-text.ts';
import type { Column } from '../terminal/table.ts';

export interface ScheduleFilterOptions {
  status?: string;
  label?: string[];
  q?: string;
  late?: true;
}

/** Options of every command about many schedules. */
export function scheduleFilter(command: Command): Command {
  return command
    .option('--status <status,…>', 'with one of these: active, paused, ended, error')
    .option('--label <key:value>', 'with this label; several: with all of them', collect)
    .option('--q <text>', 'with this text in the id or the description')
    .option('--late', 'that are late');
}

export function addListSchedules(parent: Command, cli: Cli): void {
  const command = scheduleFilter(parent.command('list').description('list schedules, by their ids')).action(
    ({ status, label, q, late, ...pages }: ScheduleFilterOptions & ListOptions) =>
      showList(cli, { path: 'schedules', query: { status, label, q, late }, pages }, columnsOf),
  );
  withExamples(
    listOptions(command),
    'firelock schedule list --label team:billing --status paused,error',
    'firelock schedule list --all --json | jq -r ".items[].id"',
  );
}

function columnsOf(view: View): Column<ScheduleAnswer>[] {
  return [
    { title: 'ID', cell: ({ id }) => id, shrinks: true },
    { title: 'STATUS', cell: statusText, paint: paintStatus },
    { title: 'WHEN', cell: triggerText, shrinks: true },
    { title: 'ZONE', cell: ({ timezone }) => timezone, shrinks: true, mayGo: true },
    { title: 'NEXT FIRE', cell: ({ nextFireAt }) => view.cellTime(nextFireAt) },
    { title: 'LAST FIRE', cell: ({ lastFireAt }) => view.cellTime(lastFireAt), isExtra: true },
    { title: 'LABELS', cell: ({ labels }) => labelsText(labels), isExtra: true },
    { title: 'DESCRIPTION', cell: ({ description }) => description, isExtra: true },
  ];
}

export function addGetSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('get <id>')
    .description('show a schedule; its JSON can be edited and given back to "schedule set --file"')
    .action((id: string) => cli.show(cli.server().call('GET', pathOf('schedules', id)), scheduleLines));
  withExamples(command, 'firelock schedule get invoices', 'firelock schedule get invoices --json | jq .target');
}

function scheduleLines(schedule: ScheduleAnswer, view: View): string[] {
  const { id, description, pauseReason, pauseUntil, error, timezone, labels, version } = schedule;
  const { expiresAfterSeconds, observe, pingKey } = schedule;
  return view.pairs([
    ['id', id],
    ['description', description],
    ['status', statusText(schedule)],
    ['error', error],
    ['paused because', pauseReason],
    ['paused until', view.time(pauseUntil)],
    ['fires', triggerText(schedule) + dayRulesInWords(schedule)],
    ['zone', timezone],
    ['next fire', view.time(schedule.nextFireAt)],
    ['last fire', view.time(schedule.lastFireAt)],
    ['observed', observe && (observe.until === null ? 'always' : `until ${view.time(observe.until)}`)],
    ['reports to', pingKey === null ? null : `/ping/${pingKey}`],
    ['target', JSON.stringify(schedule.target)],
    ['payload', schedule.payload === null ? null : JSON.stringify(schedule.payload)],
    ['overlap', schedule.overlap],
    ['catch-up', `${schedule.catchUp}, grace ${schedule.graceSeconds} s`],
    ['retry', JSON.stringify(schedule.retry)],
    ['limit', schedule.limit],
    ['expires after', expiresAfterSeconds === null ? null : `${expiresAfterSeconds} s`],
    ['labels', labelsText(labels)],
    ['version', String(version)],
    ['updated', view.time(schedule.updatedAt)],
    ['times', view.zones.replace('times are ', '')],
  ]);
}

export function addObservedSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('observed <id>')
    .description('what the job of an observed schedule reported, compared with when it was expected')
    .option('--from <instant>', `inclusive: ${INSTANT}`, '-30d')
    .option('--to <instant>', 'exclusive; a job may report a minute before its moment', '+1d')
    .action((id: string, period: Period) => {
      const query = periodOf(period, cli.surroundings);
      return cli.show(cli.server().call('GET', pathOf('schedules', id, 'observed'), { query }), observedLines);
    });
  withExamples(command, 'firelock schedule observed invoices --from -7d');
}

function observedLines({ expected, lateness, ...counts }: ObservedAnswer, view: View): string[] {
  const late = ({ p50Ms, p95Ms, maxMs }: ObservedAnswer['lateness']) =>
    p50Ms === null ? null : `${p50Ms} ms as a rule, ${p95Ms} ms in one of twenty, ${maxMs} ms at most`;
  return view.pairs([
    ['expected', expected === null ? null : String(expected)],
    ...(['reported', 'missed', 'extra', 'failed'] as const).map((name): [string, string] => [
      name,
      String(counts[name]),
    ]),
    ['late by', late(lateness)],
  ]);
}

/** When it fires, on one line. */
export function triggerText({ cron, everySeconds, at, after }: ScheduleAnswer): string {
  if (cron) return [cron].flat().join(' | ');
  if (everySeconds) return `every ${everySeconds} s`;
  if (at) return `at ${at}`;
  return after ? `after ${after.scheduleId} (${after.on.join(', ')})` : 'never: its job only reports';
}

/** Its status, and that it is late. */
function statusText({ status, late }: ScheduleAnswer): string {
  return late ? `${status}, late` : status;
}
