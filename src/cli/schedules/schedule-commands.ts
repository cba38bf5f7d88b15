import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete } from '../common/confirmed-actions.ts';
import { addBackfillSchedule, addFireSchedule } from './fire-schedules.ts';
import { addBulkSchedules, addPauseSchedule } from './pause-schedules.ts';
import { addSetSchedule } from './set-schedule.ts';
import { addGetSchedule, addListSchedules, addObservedSchedule } from './show-schedules.ts';
import { addSkipFire, addUpcomingFires } from './upcoming-fires.ts';
import { addWhySchedule } from './why-schedule.ts';

export function addScheduleCommands(program: Command, cli: Cli): void {
  const schedule = group(program, 'schedule', 'schedules: when to fire, and what to call');
  addListSchedules(schedule, cli);
  addGetSchedule(schedule, cli);
  addSetSchedule(schedule, cli);
  addPauseSchedule(schedule, cli);
  addFireSchedule(schedule, cli);
  addUpcomingFires(schedule, cli);
  addWhySchedule(schedule, cli);
  addObservedSchedule(schedule, cli);
  addSkipFire(schedule, cli);
  addBackfillSchedule(schedule, cli);
  addBulkSchedules(schedule, cli);
  const what = { noun: 'schedule', collection: 'schedules', warning: 'its open runs are abandoned' };
  withExamples(addDelete(schedule, cli, what), 'firelock schedule delete invoices --yes');
}
