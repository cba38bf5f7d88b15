import type { Command } from 'commander';
import { type Cli, group } from '../cli.ts';
import { addBackfillSchedule } from './backfill-schedule.ts';
import { addBulkSchedules } from './bulk-schedule-commands.ts';
import { addDeleteSchedule } from './delete-schedule-command.ts';
import { addFireSchedule } from './fire-schedule.ts';
import { addGetSchedule } from './get-schedule.ts';
import { addListSchedules } from './list-schedules.ts';
import { addPauseSchedule } from './pause-schedule.ts';
import { addSetSchedule } from './set-schedule.ts';
import { addSkipFire } from './skip-fire.ts';
import { addUpcomingFires } from './upcoming-fires.ts';
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
  addSkipFire(schedule, cli);
  addBackfillSchedule(schedule, cli);
  addBulkSchedules(schedule, cli);
  addDeleteSchedule(schedule, cli);
}
