import { cronOf } from './cron-expression.ts';
import { type Import, type ImportOptions, NotCarriedOver, checkTimes, createIds } from './imported.ts';

interface State extends ImportOptions {
  isSystem: boolean;
  env: Record<string, string>;
  /** CRON_TZ, from its line on; null: not set. */
  cronTimezone: string | null;
  randomDelayMinutes: number;
  idOf: ReturnType<typeof createIds>;
}

/** The lines of a crontab of a user, or of the system crontab, whose lines name their user. */
export function readCrontab(text: string, options: ImportOptions & { isSystem: boolean }): Import {
  const state: State = { ...options, env: {}, cronTimezone: null, randomDelayMinutes: 0, idOf: createIds() };
  const read: Import = { schedules: [], remarks: [] };
  for (const [index, source] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const trimmed = source.replace(/^[ \t]+/, '');
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    try {
      readLine(state, trimmed, line, read);
    } catch (error) {
      if (!(error instanceof NotCarriedOver)) throw error;
      read.remarks.push({ line, message: `not carried over: ${error.message}: ${trimmed}`, isLost: true });
    }
  }
  return read;
}

function readLine(state: State, text: string, line: number, { schedules, remarks }: Import): void {
  const [, name, value = ''] = /^([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t]*$/.exec(text) ?? [];
  if (name === undefined) {
    schedules.push({ line, fields: scheduleOf(state, text) });
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
  if (name === 'MAILTO' && value !== '')
    return 'MAILTO: firelock sends no mail; what a command prints is its result';
  return name === 'TZ' ? 'TZ is the zone of the commands, and not of the times: CRON_TZ is' : null;
}

function scheduleOf(state: State, text: string): Record<string, unknown> {
  // cronie: a line that begins with a dash is not logged.
  const words = text.replace(/^-(?=[\d*])/, '');
  const count = (words.startsWith('@') ? 1 : 5) + (state.isSystem ? 1 : 0);
  const parts = new RegExp(`^${'(\\S+)[ \\t]+'.repeat(count)}(\\S.*)$`, 's').exec(words)?.slice(1);
  if (parts === undefined) throw new NotCarriedOver(`has fewer than ${count + 1} fields`);
  const command = parts.pop() ?? '';
  const user = state.isSystem ? (parts.pop() ?? '') : null;
  const cron = cronOf(parts);
  const timezone = state.cronTimezone ?? state.timezone;
  checkTimes(cron, timezone);
  const payload = { ...splitAtPercent(command), ...(user === null ? {} : { user }), env: state.env };
  const jitter = state.randomDelayMinutes * 60;
  return {
    id: state.idOf(wordOf(payload.command), [user ?? '', command]),
    description: command.length <= MAX_DESCRIPTION ? command : `${command.slice(0, MAX_DESCRIPTION)}…`,
    cron,
    timezone,
    ...(jitter === 0 ? {} : { jitterSeconds: jitter }),
    target: state.target,
    payload,
    ...AS_CRON,
  };
}

const MAX_DESCRIPTION = 200;

/** cron makes up for nothing, and runs a command once. */
const AS_CRON = { catchUp: 'skip', retry: { maxAttempts: 1 } };

/**
 * The first % that is not escaped ends the command. The text after it is the command's input; each further % is a line
 * break.
 */
function splitAtPercent(text: string): { command: string; stdin?: string } {
  const [command = '', ...input] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'));
  return input.length === 0 ? { command } : { command, stdin: `${input.join('\n')}\n` };
}

/** The name of the program. */
function wordOf(command: string): string {
  const [program = ''] = command.replace(/^(?:\w+=\S*\s+)*/, '').split(/\s/);
  return program.split('/').at(-1) ?? '';
}

function unquoted(value: string): string {
  return /^(["'])(.*)\1$/s.exec(value)?.[2] ?? value;
}
