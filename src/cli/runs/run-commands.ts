import type { Command } from 'commander';
import { type Cli, group } from '../cli.ts';
import { addActOnRun } from './act-on-run.ts';
import { addBulkRuns } from './bulk-run-commands.ts';
import { addGetRun } from './get-run.ts';
import { addListRuns } from './list-runs.ts';
import { addTailRuns } from './tail-runs.ts';

export function addRunCommands(program: Command, cli: Cli): void {
  const run = group(program, 'run', 'runs: what became of each fire');
  addListRuns(run, cli);
  addGetRun(run, cli);
  addTailRuns(run, cli);
  addActOnRun(run, cli);
  addBulkRuns(run, cli);
}
