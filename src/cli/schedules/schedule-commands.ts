import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { group } from '../tree.ts';
import { addListSchedules } from './list-schedules.ts';

export function addScheduleCommands(program: Command, cli: Cli): void {
  const schedule = group(program, 'schedule', 'schedules: when to fire, and what to call');
  addListSchedules(schedule, cli);
}
