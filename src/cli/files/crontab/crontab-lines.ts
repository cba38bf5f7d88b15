import { calledIn, curlTarget, readCurl } from './curl-target.ts';
import { dayHints, isAll } from './day-hints.ts';
import { accountNoted, checkWords, withoutPasswords, unquoted } from './line-checks.ts';
import { reportsAlready } from './watched-schedules.ts';
import {
  NotCarriedOver,
  StaysCommand,
  type Import,
  type Imported,
  type ImportOptions,
  type LineCommand,
  checkTimes,
  createIds,
} from './imported.ts';

interface CrontabOptions extends ImportOptions {
  /** Lines name their user. */
  isSystem: boolean;
  /** A line that only calls curl becomes an HTTP target of its own. */
  takesCurl: boolean;
}

interface State extends CrontabOptions {
  env: Record<string, string>;
  /** CRON_TZ, from its line on; null: not set. */
  cronTimezone: string | null;
  randomDelayMinutes: number;
  idOf: ReturnType<typeof createIds>;
}

/** The lines of a crontab of a user, or of the system crontab, whose lines name their user. */
export function readCrontab(text: string, options: CrontabOptions): Import {
  const state: State = { ...options, env: {}, cronTimezone: null, randomDelayMinutes: 0, idOf: createIds() };
  const read: Import = { schedules: [], remarks: [] };
  for (const [index, source] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const trimmed = source.replace(/^[ \t]+/, '');
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    try {
      readLine(state, trimmed, { line, indent: source.length - trimmed.length }, read);
    } catch (error) {
      if (!(error instanceof NotCarriedOver)) throw error;
      const shown = withoutPasswords(trimmed, state.env) ?? trimmed;
      read.remarks.push({ line, message: `not carried over: ${error.message}: ${shown}`, isLost: true });
    }
  }
  return read;
}

function readLine(
  state: State,
  text: string,
  { line, indent }: { line: number; indent: number },
  { schedules, remarks }: Import,
): void {
  const [, name, value = ''] = /^([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t]*$/.exec(text) ?? [];
  if (name === undefined) {
    const { fields, command, notes } = scheduleOf(state, text);
    schedules.push({ line, fields, command: { ...command, at: indent + command.at } });
    remarks.push(...notes.map((note) => ({ line, message: note, isLost: false })));
    return;
  }
  const message = setVariable(state, name, unquoted(value));
  if (message !== null) remarks.push({ line, message, isLost: false });
}

/** Applies to the lines below. Answers what the owner should know. @throws NotCarriedOver */
function setVariable(state: State, name: string, value: string): string | null {
  switch (name) {
    case 'CRON_TZ':
      state.cronTimezone = value === '' ? null : value;
      return null;
    case 'RANDOM_DELAY':
      if (!/^\d{1,4}$/.test(value) || Number(value) > 1440)
        throw new NotCarriedOver('RANDOM_DELAY is a number of minutes, at most 1440');
      state.randomDelayMinutes = Number(value);
      return null;
    default:
      // Each schedule has the environment of its line.
      state.env = { ...state.env, [name]: value };
  }
  if (name === 'MAILTO' && value !== '') return 'MAILTO: firelock sends no mail; what a command prints is its result';
  return name === 'TZ' ? 'TZ is the zone of the commands, and not of the times: CRON_TZ is' : null;
}

function scheduleOf(state: State, text: string): Pick<Imported, 'fields'> & { command: LineCommand; notes: string[] } {
  // cronie: a line that begins with a dash is not logged.
  const words = text.replace(/^-(?=[\d*])/, '');
  const count = (words.startsWith('@') ? 1 : 5) + (state.isSystem ? 1 : 0);
  const parts = new RegExp(`^${'(\\S+)[ \\t]+'.repeat(count)}(\\S.*)$`, 's').exec(words)?.slice(1);
  if (parts === undefined) throw new NotCarriedOver(`has fewer than ${count + 1} fields`);
  const source = parts.pop() ?? '';
  const user = state.isSystem ? (parts.pop() ?? '') : null;
  if (reportsAlready(source))
    throw new NotCarriedOver('it reports to firelock: import the crontab that this one was made from');
  checkWords(source, user);
  const cron = cronOf(parts);
  const timezone = state.cronTimezone ?? state.timezone;
  checkTimes(cron, timezone);
  const { shown, id, handoff, retry, notes } = handoffOf(state, source, user);
  const jitter = state.randomDelayMinutes * 60;
  const fields = {
    id,
    description: shown.length <= MAX_DESCRIPTION ? shown : `${shown.slice(0, MAX_DESCRIPTION)}…`,
    cron,
    timezone,
    ...(jitter === 0 ? {} : { jitterSeconds: jitter }),
    ...handoff,
    // cron makes up for nothing, and runs a command once.
    catchUp: 'skip',
    retry: retry ?? { maxAttempts: 1 },
  };
  const { command } = splitAtPercent(source);
  const hints = dayHints({ cron, command });
  return {
    fields,
    command: { text: command, at: text.length - source.length, shell: state.env['SHELL'] ?? '/bin/sh' },
    notes: [...accountNoted(source, user), ...notes, ...hints],
  };
}

interface Command {
  shown: string;
  id: string;
  handoff: Record<string, unknown>;
  retry: object | null;
  notes: string[];
}

/** What is called, or given to workers. */
function handoffOf(state: State, source: string, user: string | null): Command {
  const given = { ...splitAtPercent(source), env: state.env };
  const word = wordOf(given.command);
  const notes: string[] = [];
  const called = calledIn(given.command);
  if (state.takesCurl && called !== null) {
    try {
      const call = readCurl({ source, ...given });
      const shown = call.redacted ?? source;
      const id = state.idOf(word, [user ?? '', shown]);
      const { target, notes: secrets } = curlTarget(call, id);
      const { timeoutSeconds, retry } = call;
      return { shown, id, handoff: { target, timeoutSeconds }, retry, notes: secrets };
    } catch (error) {
      if (!(error instanceof StaysCommand)) throw error;
      notes.push(`its ${called} stays a command for a worker: ${error.message}`);
    }
  }
  if (withoutPasswords(source, state.env) !== null) throw new NotCarriedOver(SECRET);
  const { env, ...rest } = given;
  const payload = { ...rest, ...(user === null ? {} : { user }), env };
  const id = state.idOf(word, [user ?? '', source]);
  return { shown: source, id, handoff: { target: state.target, payload }, retry: null, notes };
}

const MAX_DESCRIPTION = 200;

const SECRET =
  'every viewer would see its password or token: put it into a file of the worker’s machine, as for curl’s -K, and name that file';

/**
 * The first % that is not escaped ends the command. The text after it is the command's input; each further % is a line
 * break, and the last line has one.
 */
function splitAtPercent(text: string): { command: string; stdin?: string } {
  const [command = '', ...input] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'));
  const stdin = input.join('\n');
  return stdin === '' ? { command } : { command, stdin: stdin.endsWith('\n') ? stdin : `${stdin}\n` };
}

/** The name of the program. */
function wordOf(command: string): string {
  const [program = ''] = command.replace(/^(?:\w+=\S*\s+)*/, '').split(/\s/);
  return program.split('/').at(-1) ?? '';
}

const NICKNAMES = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];

/**
 * When a line of a crontab runs, as a cron expression of firelock. In both, if both day fields are restricted, a day
 * matches when either field does. But cron treats a field that begins with * as unrestricted: then a day must match
 * both, which is firelock's `+`. @throws NotCarriedOver
 */
function cronOf(fields: readonly string[]): string {
  const [first = ''] = fields;
  if (first.startsWith('@')) {
    const nickname = first.toLowerCase();
    if (NICKNAMES.includes(nickname)) return nickname;
    throw new NotCarriedOver(
      nickname === '@reboot'
        ? '@reboot: firelock does not see the machine boot; fire the schedule from a boot script'
        : `${first} is not known to firelock`,
    );
  }
  for (const [index, field] of fields.entries()) checkField(field, NAMES[index] ?? '');
  const [minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = fields;
  const isEither = !dayOfMonth.startsWith('*') && !dayOfWeek.startsWith('*');
  const both = !isEither && !isAll(dayOfMonth) && !isAll(dayOfWeek) ? '+' : '';
  return [minute, hour, dayOfMonth, month, both + dayOfWeek].join(' ');
}

const NAMES = ['minute', 'hour', 'day of month', 'month', 'day of week'];
const ITEM = /^(?:\*|\d{1,2}|[a-z]{3})(?:-(?:\d{1,2}|[a-z]{3}))?(?:\/\d{1,2})?$/i;

/** What cron accepts: firelock gives other signs a meaning of its own. */
function checkField(field: string, name: string): void {
  const items = field.split(',');
  const odd = items.find((item) => !ITEM.test(item));
  if (odd !== undefined)
    throw new NotCarriedOver(`${name}: “${odd}” means different things to different versions of cron`);
  if (items.length > 1 && items.some((item) => item.startsWith('*')))
    throw new NotCarriedOver(`${name}: a list that contains * means different things to different versions of cron`);
}
