import { isObject } from '../../api/http/json/json-body.ts';

/** What a worker uses of a run that it has claimed. */
export interface Claimed {
  id: string;
  /** `scheduleId@scheduledFor`; null: it is no planned fire. */
  name: string | null;
  scheduleId: string | null;
  scheduledFor: string;
  attempts: number;
  payloadFrom: 'schedule' | 'request';
  /** As the server wrote it: numbers have all their digits. Null: there is none. */
  payload: string | null;
}

/** The runs in the answer to a claim. @throws SyntaxError if it is not JSON */
export function claimedRuns(answer: string): Claimed[] {
  const { items = [] } = JSON.parse(answer) as { items?: Omit<Claimed, 'payload'>[] };
  const payloads = payloadTexts(answer);
  return items.map((run, index) => {
    const payload = payloads[index] ?? 'null';
    return { ...run, payload: payload === 'null' ? null : payload };
  });
}

/** A string, or a sign of the structure. */
const TOKEN = /"[^"\\]*(?:\\[^][^"\\]*)*"|[{}[\],:]/g;
/** Of the members of an item. */
const DEPTH = 3;

/** The source of each item's payload, in their order: parsing it would change digits, white space and escapes. */
function payloadTexts(answer: string): string[] {
  const texts: string[] = [];
  let depth = 0;
  let name = '';
  let from: number | null = null;
  for (const { 0: token, index } of answer.matchAll(TOKEN)) {
    if (token.startsWith('"')) name = token;
    else if (token === ':') {
      if (depth === DEPTH && name === '"payload"') from = index + 1;
    } else if (token === '{' || token === '[') depth += 1;
    else {
      if (depth === DEPTH && from !== null) {
        texts.push(answer.slice(from, index).trim());
        from = null;
      }
      if (token !== ',') depth -= 1;
    }
  }
  return texts;
}

/** What the worker runs: its own words or text of a shell for each run, or the command in the payload. */
export type Choice =
  { kind: 'words'; words: readonly string[] } | { kind: 'shell'; text: string } | { kind: 'payload'; any: boolean };

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

type JobCommand = OwnCommand | CrontabCommand | { kind: 'refused'; why: string };

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
  return isObject(value) && Object.entries(value).every(([name, text]) => /^[^=\0]+$/.test(name) && isText(text));
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

/**
 * The words of a command as a shell would split it (POSIX.1-2017, XCU 2.2), with nothing expanded; null: a quote is not closed, or it
 * ends with a backslash.
 */
export function execWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  PIECE.lastIndex = 0;
  for (let at = 0; at < text.length; at = PIECE.lastIndex) {
    const piece = PIECE.exec(text);
    if (piece === null) return null;
    const [, blank, single, double, escaped, plain] = piece;
    if (blank !== undefined) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? '') + (single ?? double?.replace(IN_DOUBLE, '$1') ?? escaped ?? plain ?? '');
    }
  }
  return word === null ? words : [...words, word];
}

const PIECE = /(\s+)|'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+)/y;
const IN_DOUBLE = /\\([$`"\\])/g;
