import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { promisify } from 'node:util';
import {
  type Choice,
  type Claimed,
  type CrontabCommand,
  type Environment,
  commandOf,
  runVariables,
} from './job-command.ts';

/** How a process is started. */
export interface Launch {
  words: readonly string[];
  /** Words that make a process another account's, if it is to be: whatever runs before them does not get `env`. */
  as?: readonly string[];
  env: Environment;
  /** Undefined: where the worker runs. */
  cwd?: string;
  stdin: string;
}

interface Account {
  username: string;
  homedir: string;
  as?: readonly string[];
}

/** Says why the command of a run is not started. */
export class NotStarted extends Error {
  override readonly name = 'NotStarted';
}

/** @throws NotStarted */
export async function launchOf(
  run: Claimed,
  choice: Choice,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Launch> {
  const command = commandOf(run, choice);
  if (command.kind === 'refused') throw new NotStarted(command.why);
  if (command.kind === 'crontab') return asCron(command, run);
  // The token is the worker's: it may report on every run that it can claim.
  const { FIRELOCK_TOKEN: _, ...own } = env;
  const given = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    words: command.words,
    stdin: command.stdin,
    env: { ...Object.fromEntries(given), ...runVariables(run) },
  };
}

/** As cron does it: a shell, the environment of the crontab and little else, in the user's home. */
async function asCron({ command, stdin, user, env }: CrontabCommand, run: Claimed): Promise<Launch> {
  const { username, homedir, as } = await accountOf(user);
  const home = env['HOME'] ?? homedir;
  const shell = env['SHELL'] ?? '/bin/sh';
  const login = { HOME: home, SHELL: shell, LOGNAME: username, USER: username };
  return {
    words: [shell, '-c', command],
    ...(as && { as }),
    env: { PATH: '/usr/bin:/bin', ...env, ...login, ...runVariables(run) },
    // cron starts a command although its home is not there.
    cwd: (await isFolder(home)) ? home : '/',
    stdin,
  };
}

/** Of the worker itself, unless its user is root. */
async function accountOf(user: string | null): Promise<Account> {
  const me = userInfo();
  if (user === null || user === me.username) return me;
  if (me.uid !== 0)
    throw new NotStarted(`this worker runs as ${me.username}, and cannot run a command of ${user}; root can`);
  const found = await promisify(execFile)('getent', ['passwd', user]).catch((error: unknown) => error);
  if (!isAnswer(found)) throw new NotStarted(whyNoAccount(user, found));
  const [username = '', , uid, gid, , homedir = '/'] = found.stdout.trim().split(':');
  // Node would leave a process only the first of the groups.
  return {
    username,
    homedir,
    as: ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--'],
  };
}

function isAnswer(found: unknown): found is { stdout: string } {
  return !(found instanceof Error);
}

function whyNoAccount(user: string, error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'number'
    ? `there is no user ${user} on ${hostname()}`
    : `user ${user} cannot be looked up: getent: ${String(code)}`;
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
