import {
  SINGULAR,
  type Change,
  type FieldChange,
  type FilePlan,
  type FileFault,
  faultLines,
} from '../../schedules-file/schedules-file.ts';
import { type FileVariables, parseFileVariables } from '../../core/secrets/file-variables.ts';
import { NotApplied, applyPlan } from '../../schedules-file/apply/apply-plan.ts';
import { type ApiCaller, Refused } from '../../schedules-file/apply/caller.ts';
import { planFile } from '../../schedules-file/apply/plan-file.ts';
import { readSchedulesFile } from '../../schedules-file/read/read-file.ts';
import { RawJson } from '../../api/http/json/raw-json.ts';
import { printable } from '../terminal/shown-text.ts';
import type { View } from '../terminal/output.ts';
import type { Cli } from '../cli.ts';
import { fileText } from '../common/arguments.ts';
import { CliError, EXIT } from '../exit-codes.ts';

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
  const file = readSchedulesFile(await fileText(path, cli.surroundings), { variables, set });
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
    const stays = `created ${created}, changed ${updated}, deleted ${deleted} before the error; these changes stay. Apply the file again for the rest`;
    const lines = [error.message, ...faultLines(path, error.faults), stays].map(printable);
    throw new CliError(EXIT.failed, lines.join('\n'));
  }
}

function faulty(path: string, faults: readonly FileFault[]): CliError {
  const lines = faultLines(path, faults).map(printable);
  return new CliError(EXIT.failed, [`nothing was applied; ${path} has errors:`, ...lines].join('\n'));
}

function callerOf(cli: Cli): ApiCaller {
  const server = cli.server();
  return {
    send: (method, path, body, headers = {}) =>
      server.ask(method, path, { ...(body === undefined ? {} : { body: new RawJson(body) }), headers }),
  };
}

const SIGNS = { created: '+', updated: '~', deleted: '-' } as const;
const PAINTS = { created: 'green', updated: 'yellow', deleted: 'red' } as const;
const MASK = '***';

function planLines({ changes, unchanged }: FilePlan, view: View): string[] {
  return [...changes.flatMap((change) => changeLines(change, view)), summary(changes, unchanged)];
}

function changeLines({ kind, id, change, fields }: Change, view: View): string[] {
  const title = view.paint(PAINTS[change], `${SIGNS[change]} ${SINGULAR[kind]} ${id}`);
  return [title, ...fields.map((field) => `    ${printable(fieldText(field))}`)];
}

function fieldText({ path, before, after }: FieldChange): string {
  // Two masks look alike, whatever values they hide.
  if (before === MASK && after === MASK) return `${path}: another secret value`;
  return `${path}: ${shortJson(before)} → ${shortJson(after)}`;
}

const MAX_LENGTH = 200;

function shortJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}

function summary(changes: readonly Change[], unchanged: number): string {
  const count = (wanted: Change['change']) => changes.filter(({ change }) => change === wanted).length;
  return `${count('created')} to create, ${count('updated')} to change, ${count('deleted')} to delete, ${unchanged} unchanged`;
}
