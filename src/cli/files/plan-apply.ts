import { readFile } from 'node:fs/promises';
import { type FileVariables, parseFileVariables } from '../../core/secrets/file-variables.ts';
import { NotApplied, applyPlan } from '../../schedules-file/apply/apply-plan.ts';
import { type ApiCaller, Refused } from '../../schedules-file/apply/caller.ts';
import { planFile } from '../../schedules-file/apply/plan-file.ts';
import type { FilePlan } from '../../schedules-file/apply/file-plan.ts';
import { type FileFault, faultLines } from '../../schedules-file/schedules-file.ts';
import { readSchedulesFile } from '../../schedules-file/read/read-file.ts';
import type { Cli } from '../cli.ts';
import { CliError, EXIT } from '../exit-codes.ts';
import { RawJson } from '../../api/http/json/raw-json.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { printable } from '../terminal/shown-text.ts';
import { planLines } from './plan-text.ts';

export interface FileOptions {
  prune?: boolean;
  set?: string;
  /** Names of environment variables. */
  variable?: string[];
}

/** The exit code of `plan` and `apply` if something changes, or has changed. */
const CHANGES = 2;

/** Answers the exit code: 0 nothing to do, 2 something changes, 1 all other cases. */
export async function planOrApply(
  cli: Cli,
  path: string,
  options: FileOptions,
  isApplied: boolean,
): Promise<number> {
  try {
    return await inOrder(cli, path, options, isApplied);
  } catch (error) {
    if (error instanceof CliError && error.exitCode !== EXIT.interrupted)
      throw new CliError(EXIT.failed, error.message);
    if (error instanceof Refused) throw new CliError(EXIT.failed, error.message);
    throw error;
  }
}

async function inOrder(
  cli: Cli,
  path: string,
  { prune = false, set, variable }: FileOptions,
  isApplied: boolean,
): Promise<number> {
  const variables = variablesOf(cli, variable);
  const file = readSchedulesFile(await textOf(cli, path), { variables, set });
  if (prune && file.set === null && !file.isBroken)
    file.faults.push({ line: 1, message: '--prune needs the name of a set: `set` in the file, or --set' });
  if (file.isBroken) throw faulty(path, file.faults);
  const caller = callerOf(cli);
  const plan = await planFile(caller, file, { prune });
  if (plan.faults.length > 0) throw faulty(path, plan.faults);
  if (isApplied) await apply(caller, path, plan);
  const { changes, unchanged } = plan;
  cli.output().show({ changes, unchanged, applied: isApplied }, (view) => planLines(plan, view));
  return changes.length === 0 ? EXIT.done : CHANGES;
}

/** Those that the caller lists. @throws CliError */
function variablesOf({ surroundings: { env } }: Cli, named: readonly string[] = []): FileVariables {
  const listed = env['FIRELOCK_FILE_VARIABLES'] ?? '';
  const list = [...named, ...(listed === '' ? [] : [listed])];
  const read = list.length === 0 ? { names: [] } : parseFileVariables(list.join());
  if ('faults' in read) {
    const said = read.faults.map(({ entry, message }) => `${JSON.stringify(entry)} ${message}`);
    throw new CliError(EXIT.failed, `--variable, FIRELOCK_FILE_VARIABLES: ${said.join('; ')}`);
  }
  return { env, allowed: read.names, allowedBy: '--variable, or FIRELOCK_FILE_VARIABLES' };
}

async function apply(caller: ApiCaller, path: string, plan: FilePlan): Promise<void> {
  try {
    await applyPlan(caller, plan);
  } catch (error) {
    if (!(error instanceof NotApplied)) throw error;
    const { created, updated, deleted } = error.applied;
    const stays = `created ${created}, changed ${updated}, deleted ${deleted}; that stays so. Apply the file again for the rest`;
    const lines = [error.message, ...faultLines(path, error.faults), stays].map(printable);
    throw new CliError(EXIT.failed, lines.join('\n'));
  }
}

function faulty(path: string, faults: readonly FileFault[]): CliError {
  const lines = faultLines(path, faults).map(printable);
  return new CliError(EXIT.failed, [`nothing is applied; ${path} has faults:`, ...lines].join('\n'));
}

/** `-` is standard input. @throws CliError */
export async function textOf({ surroundings }: Cli, path: string): Promise<string> {
  if (path === '-') return surroundings.input.read();
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError(EXIT.failed, `cannot read the file: ${reasonOf(error)}`);
  }
}

function callerOf(cli: Cli): ApiCaller {
  const server = cli.server();
  return {
    send: (method, path, body, headers = {}) =>
      server.ask(method, path, { ...(body === undefined ? {} : { body: new RawJson(body) }), headers }),
  };
}
