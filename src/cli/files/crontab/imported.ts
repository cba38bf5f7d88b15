import { createHash } from 'node:crypto';
import { itemInput } from '../../../api/schedules/schemas.ts';
import { cronTimes } from '../../../core/cron/cron.ts';
import { EARLIEST } from '../../../core/instant.ts';
import { isZone } from '../../../core/zones/zone.ts';
import { reasonOf } from '../../../runtime/reason.ts';
import { listItem } from '../yaml-text.ts';

/** The result for one line, or for one CronJob. */
export interface Imported {
  line: number;
  fields: Record<string, unknown>;
  /** Of a line of a crontab. */
  command?: LineCommand;
}

export interface LineCommand {
  text: string;
  /** So many characters of its line come before it. */
  at: number;
  /** Runs it. */
  shell: string;
}

/** Parts that are not carried over, or not completely. */
export interface Remark {
  line: number;
  message: string;
  /** The whole line or CronJob is not carried over. */
  isLost: boolean;
}

export interface Import {
  schedules: Imported[];
  remarks: Remark[];
}

export interface ImportOptions {
  /** The zone for times that name none. */
  timezone: string;
  target: Record<string, unknown>;
}

/** Says why something cannot be carried over. */
export class NotCarriedOver extends Error {
  override readonly name = 'NotCarriedOver';
}

/** Says why a command that calls curl or wget becomes no HTTP target, and stays one for a worker. */
export class StaysCommand extends Error {
  override readonly name = 'StaysCommand';
}

/** @throws NotCarriedOver for a value that firelock would refuse */
export function checkTimes(cron: string, timezone: string): void {
  if (!isZone(timezone)) throw new NotCarriedOver(`${timezone} is not the IANA name of a zone`);
  let first;
  try {
    first = cronTimes(cron, timezone, 'x').next(EARLIEST);
  } catch (error) {
    throw new NotCarriedOver(reasonOf(error));
  }
  if (first === null) throw new NotCarriedOver('it never runs');
}

/** @throws NotCarriedOver for the first field of a schedule that `plan` would refuse */
export function checkFields(fields: object): void {
  const [issue] = itemInput.safeParse(fields).error?.issues ?? [];
  if (issue) throw new NotCarriedOver(`firelock refuses ${issue.path.join('/')}: ${issue.message}`);
}

/**
 * An id from a word that describes the entry and a hash of its content: it stays the same when lines move, or run at
 * other times. If several are the same, the later ones are numbered.
 */
export function createIds(): (word: string, identity: readonly string[]) => string {
  const taken = new Map<string, number>();
  return (word, identity) => {
    const hash = createHash('sha256').update(identity.join('\0')).digest('hex').slice(0, 8);
    const id = `${
      word
        .replace(/[^A-Za-z0-9._-]+/g, '-')
        .replace(/^[^A-Za-z0-9]+/, '')
        .slice(0, 60) || 'job'
    }-${hash}`;
    const count = (taken.get(id) ?? 0) + 1;
    taken.set(id, count);
    return count === 1 ? id : `${id}-${count}`;
  };
}

/** The file; what is not carried over stands in it as comments, at its place. */
export function importText({ schedules, remarks }: Import, head: readonly string[], set: string | null): string {
  const parts = [
    ...remarks.map(({ line, message }) => ({ line, text: `  # line ${line}: ${message}\n` })),
    ...schedules.map(({ line, fields }) => ({ line, text: listItem(fields) })),
  ].sort((a, b) => a.line - b.line);
  const lines = [...head.map((line) => `# ${line}\n`), ...(set === null ? [] : [`set: ${JSON.stringify(set)}\n`])];
  const items = parts.map(({ text }) => text).join('');
  return `${lines.join('')}schedules:\n${items}${schedules.length === 0 ? '  []\n' : ''}`;
}
