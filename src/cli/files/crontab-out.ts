import { randomUUID } from 'node:crypto';
import { access, link, open, rm } from 'node:fs/promises';
import { reasonOf } from '../../runtime/reason.ts';
import { Refused } from '../../schedules-file/apply/caller.ts';
import type { Cli } from '../cli.ts';
import { type CliError, failure, usageError } from '../exit-codes.ts';
import { type Server, pathOf } from '../server/server-calls.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import type { Import } from './crontab/imported.ts';
import { reportingCrontab } from './crontab/watched-schedules.ts';
import { carryOut } from './plan-apply.ts';

/** @throws CliError that names all that is missing */
export async function checkCrontabOut(
  cli: Cli,
  target: string,
  { observe = false }: { observe?: boolean | undefined },
): Promise<void> {
  const { FIRELOCK_URL = '', FIRELOCK_TOKEN = '' } = cli.surroundings.env;
  const faults = [
    ...(observe ? [] : ['it needs --observe: cron goes on running the jobs']),
    ...(FIRELOCK_URL === '' ? ['FIRELOCK_URL is not set: there the jobs report'] : []),
    ...(FIRELOCK_TOKEN === '' && (FIRELOCK_URL === '' || (await asksForToken(cli)))
      ? ['FIRELOCK_TOKEN is not set: only operators and admins see by which address a job reports']
      : []),
    ...((await isThere(target)) ? [`${target} is there already, and is not overwritten`] : []),
  ];
  if (faults.length > 0) throw usageError(faults.map((fault) => `--crontab-out: ${fault}`).join('\n'));
}

/** An installation may have none. */
async function asksForToken(cli: Cli): Promise<boolean> {
  return (await cli.server().ask('GET', 'me')).status === 401;
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

interface Reporting {
  path: string;
  bytes: Buffer;
  /** The file of schedules. */
  text: string;
  read: Import;
}

/** Applies the schedules, and writes the crontab whose lines report to them. @throws CliError */
export async function writeReporting(cli: Cli, target: string, given: Reporting): Promise<void> {
  const { path, bytes, text, read } = given;
  const server = cli.server();
  const ids = read.schedules.map(({ fields }) => String(fields['id']));
  await writeNew(target, async () => {
    await refuseTakenOver(server, ids);
    await applied(cli, { path: `what ${path} becomes`, text });
    return reportingCrontab(bytes, read.schedules, { server: server.url, keys: await keysOf(server, ids) });
  });
  const count = read.schedules.length;
  cli
    .output()
    .note(
      `applied; lines of ${target} that report to ${server.url}: ${count}; install it in the place of what was read`,
    );
}

/** Applied, the file would take a job from firelock that firelock runs, and nobody else might run it. @throws CliError */
async function refuseTakenOver(server: Server, ids: readonly string[]): Promise<void> {
  const taken: string[] = [];
  for (const id of ids) {
    const found = (await server.find(pathOf('schedules', id)))?.body() as ScheduleAnswer | undefined;
    if (found && found.observe?.until !== null) taken.push(id);
  }
  if (taken.length > 0)
    throw failure(
      `nothing was applied: firelock runs ${taken.join(', ')}, or will; to have it only watch again, set observe: {until: null}`,
    );
}

async function keysOf(server: Server, ids: readonly string[]): Promise<Map<unknown, string>> {
  const keys = new Map<unknown, string>();
  for (const id of ids) {
    const { pingKey } = (await server.call('GET', pathOf('schedules', id))).body() as ScheduleAnswer;
    if (pingKey === null)
      throw failure(`this token does not see by which address ${id} reports: that needs an operator's`);
    keys.set(id, pingKey);
  }
  return keys;
}

async function applied(cli: Cli, file: { path: string; text: string }): Promise<void> {
  try {
    await carryOut(cli, file, {}, true);
  } catch (error) {
    throw error instanceof Refused ? failure(error.message) : error;
  }
}

/** For its owner only, and complete or not at all: ping addresses are secrets. Nothing is done where it could not be written. */
async function writeNew(path: string, make: () => Promise<Buffer>): Promise<void> {
  const draft = `${path}.draft-${randomUUID()}`;
  const file = await open(draft, 'wx', 0o600).catch((error: unknown) => {
    throw cannotWrite(path, error);
  });
  try {
    const bytes = await make();
    await file.writeFile(bytes);
    await file.sync();
    // Unlike a rename, it takes the place of no other file.
    await link(draft, path).catch((error: unknown) => {
      throw cannotWrite(path, error);
    });
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
}

function cannotWrite(path: string, error: unknown): CliError {
  return failure(`cannot write ${path}: ${reasonOf(error)}`);
}
