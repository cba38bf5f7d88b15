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
import { CliError, EXIT, failure } from '../exit-codes.ts';

export interface FileOptions {
  prune?: boolean;
  set?: string;
  /** Names of environment variables. */
  variable?: string[];
}

/** The exit code of `plan` and `apply` if something changes, or has changed. */
const CHANGES = 2;

/** Answers the exit code: 0 nothing to do, 2 something changes; of a command that was not understood 64, and else 1. */
export async function planOrApply(cli: Cli, path: string, options: FileOptions, isApplied: boolean): Promise<number> {
  try {
    return await inOrder(cli, path, options, isApplied);
  } catch (error) {
    if (error instanceof CliError && ([EXIT.interrupted, EXIT.usage] as number[]).includes(error.exitCode)) throw error;
    throw error instanceof CliError || error instanceof Refused ? failure(error.message) : error;
  }
}

async function inOrder(cli: Cli, path: string, options: FileOptions, isApplied: boolean): Promise<number> {
  const plan = await carryOut(cli, { path, text: await fileText(path, cli.surroundings) }, options, isApplied);
  const { changes, unchanged } = plan;
  cli.output().show({ changes, unchanged, applied: isApplied }, (view) => planLines(plan, view, isApplied));
  return changes.length === 0 ? EXIT.done : CHANGES;
}

/** @throws CliError, Refused */
export async function carryOut(
  cli: Cli,
  { path, text }: { path: string; text: string },
  { prune = false, set, variable }: FileOptions,
  isApplied: boolean,
): Promise<FilePlan> {
  const variables = variablesOf(cli, variable);
  const file = readSchedulesFile(text, { variables, set });
  if (prune && file.set === null && !file.isBroken)
    file.faults.push({ line: 1, message: '--prune needs the name of a set: `set` in the file, or --set' });
  if (file.isBroken) throw faulty(path, file.faults);
  const caller = callerOf(cli);
  const plan = await planFile(caller, file, { prune });
  if (plan.faults.length > 0) throw faulty(path, plan.faults);
  if (isApplied) await apply(caller, path, plan);
  return plan;
}

/** Those that the caller lists. @throws CliError */
function variablesOf({ surroundings: { env } }: Cli, named: readonly string[] = []): FileVariables {
  const listed = env['FIRELOCK_FILE_VARIABLES'] ?? '';
  const list = [...named, ...(listed === '' ? [] : [listed])];
  const [allowed, faults] = list.length === 0 ? [[], []] : parseFileVariables(list.join());
  const said = faults.map(({ entry, message }) => `${JSON.stringify(entry)} ${message}`);
  if (said.length > 0) throw failure(`--variable, FIRELOCK_FILE_VARIABLES: ${said.join('; ')}`);
  return { env, allowed, allowedBy: '--variable, or FIRELOCK_FILE_VARIABLES' };
}

async function apply(caller: ApiCaller, path: string, plan: FilePlan): Promise<void> {
  try {
    await applyPlan(caller, plan);
  } catch (error) {
    if (!(error instanceof NotApplied)) throw error;
    const { created, updated, deleted } = error.applied;
    const stays = `created ${created}, changed ${updated}, deleted ${deleted} before the error; these changes stay. Apply the file again for the rest`;
    const lines = [error.message, ...faultLines(path, error.faults), stays].map(printable);
    throw failure(lines.join('\n'));
  }
}

function faulty(path: string, faults: readonly FileFault[]): CliError {
  const lines = faultLines(path, faults).map(printable);
  return failure([`nothing was applied; ${path} has errors:`, ...lines].join('\n'));
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

function planLines({ changes, unchanged }: FilePlan, view: View, isApplied: boolean): string[] {
  const count = (wanted: Change['change']) => changes.filter(({ change }) => change === wanted).length;
  const [created, updated, deleted] = [count('created'), count('updated'), count('deleted')];
  const summary = isApplied
    ? `${created} created, ${updated} changed, ${deleted} deleted, ${unchanged} unchanged`
    : `${created} to create, ${updated} to change, ${deleted} to delete, ${unchanged} unchanged`;
  return [...changes.flatMap((change) => changeLines(change, view)), summary];
}

/** Of a payload that is another one, each place differs. */
const MOST_FIELDS = 100;

function changeLines({ kind, id, change, fields }: Change, view: View): string[] {
  const title = view.paint(PAINTS[change], `${SIGNS[change]} ${SINGULAR[kind]} ${id}`);
  const lines = fields.slice(0, MOST_FIELDS).map((field) => `    ${printable(fieldText(field))}`);
  const left = fields.length - lines.length;
  return [title, ...lines, ...(left > 0 ? [`    and ${left} others, which --json names`] : [])];
}

function fieldText({ path, before, after }: FieldChange): string {
  // Two masks look alike, whatever values they hide.
  if (before === MASK && after === MASK) return `${path}: another secret value`;
  const texts = [before, after].map((value) => (value === undefined ? 'absent' : JSON.stringify(value)));
  return `${path}: ${whereTheyDiffer(texts).join(' → ')}`;
}

const MAX_LENGTH = 200;
/** Of what is the same, before what is not. */
const LEAD = 40;

/** Long texts are cut, but not what differs. */
function whereTheyDiffer(texts: readonly string[]): string[] {
  const [one = '', other = ''] = texts;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  const start = same + LEAD < MAX_LENGTH ? 0 : same - LEAD;
  return texts.map((text) => {
    const end = start + MAX_LENGTH;
    return `${start > 0 ? '…' : ''}${text.slice(start, end)}${text.length > end ? '…' : ''}`;
  });
}
