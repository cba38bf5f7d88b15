import { isObject } from '../../api/http/json/json-body.ts';
import type { Claimed } from './claimed-runs.ts';

/** What the worker runs: its own words or text of a shell for each run, or the command in the payload. */
export type Choice =
  | { kind: 'words'; words: readonly string[] }
  | { kind: 'shell'; text: string }
  | { kind: 'payload'; any: boolean };

export type Environment = Readonly<Record<string, string>>;

/** A command of the worker's own: the payload is its input. */
interface OwnCommand {
  kind: 'own';
  words: readonly string[];
  stdin: string;
}

/** A command as a line of a crontab has it. */
export interface CrontabCommand {
  kind: 'crontab';
  command: string;
  stdin: string;
  /** Null: that of the worker. */
  user: string | null;
  env: Environment;
}

export type JobCommand = OwnCommand | CrontabCommand | { kind: 'refused'; why: string };

export function commandOf(run: Claimed, choice: Choice): JobCommand {
  const stdin = run.payload ?? '';
  if (choice.kind === 'words') return { kind: 'own', words: choice.words, stdin };
  if (choice.kind === 'shell') return { kind: 'own', words: ['/bin/sh', '-c', choice.text], stdin };
  if (run.payloadFrom !== 'schedule' && !choice.any) return { kind: 'refused', why: FOREIGN };
  return crontabCommand(JSON.parse(run.payload ?? 'null'));
}

const FOREIGN =
  'the command did not come from the schedule, but with the call that made this run, so it was not run; ' +
  'a worker that is started with --allow-request-payloads runs such commands';

function crontabCommand(payload: unknown): JobCommand {
  if (!isObject(payload) || !isText(payload['command']))
    return { kind: 'refused', why: 'the payload has no command, and the worker was started without --exec' };
  const { command, stdin = '', user = null, env = {} } = payload;
  if (typeof stdin !== 'string') return { kind: 'refused', why: 'the payload’s stdin is no text' };
  if (user !== null && !(typeof user === 'string' && USER.test(user)))
    return { kind: 'refused', why: 'the payload’s user is no name of a user' };
  if (!isEnvironment(env))
    return { kind: 'refused', why: 'the payload’s env is not an object of texts by their names' };
  return { kind: 'crontab', command, stdin, user, env };
}

const USER = /^[A-Za-z_][\w.-]*\$?$/;

/** A process takes no NUL in its words and its environment. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0');
}

function isEnvironment(value: unknown): value is Environment {
  return (
    isObject(value) && Object.entries(value).every(([name, text]) => /^[^=\0]+$/.test(name) && isText(text))
  );
}

/** What a command is told of its run. What a run does not have is empty. */
export function runVariables({ id, scheduleId, scheduledFor, attempts, name }: Claimed): Environment {
  return {
    RUN_ID: id,
    SCHEDULE_ID: scheduleId ?? '',
    SCHEDULED_FOR: scheduledFor,
    ATTEMPT: String(attempts),
    NAME: name ?? '',
  };
}
