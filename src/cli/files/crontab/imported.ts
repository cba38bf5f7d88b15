import { createHash } from 'node:crypto';
import { cronTimes } from '../../../core/cron/cron.ts';
import { EARLIEST } from '../../../core/instant.ts';
import { isZone } from '../../../core/zones/zone.ts';
import { reasonOf } from '../../../runtime/reason.ts';
import { listItem } from '../yaml-text.ts';

/** What one line, or one CronJob, becomes. */
export interface Imported {
  line: number;
  fields: Record<string, unknown>;
}

/** What is not carried over, or not wholly. */
export interface Remark {
  line: number;
  message: string;
  /** Nothing of it is carried over. */
  isLost: boolean;
}

export interface Import {
  schedules: Imported[];
  remarks: Remark[];
}

export interface ImportOptions {
  /** The zone of times that name none. */
  timezone: string;
  target: Record<string, unknown>;
}

/** Says why something cannot be carried over. */
export class NotCarriedOver extends Error {
  override readonly name = 'NotCarriedOver';
}

/** @throws NotCarriedOver for what firelock would refuse */
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

/**
 * An id of a word that says what it is, and of what makes it itself: it stays the same when lines move, or run at other times. Of those
 * that are the same, the later ones are numbered.
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

/** The file, with what is not carried over as comments where it stood. */
export function importText(
  { schedules, remarks }: Import,
  head: readonly string[],
  set: string | null,
): string {
  const parts = [
    ...schedules.map(({ line, fields }) => ({ line, text: listItem(fields) })),
    ...remarks.map(({ line, message }) => ({ line, text: `  # line ${line}: ${message}\n` })),
  ].sort((a, b) => a.line - b.line);
  const lines = [
    ...head.map((line) => `# ${line}\n`),
    ...(set === null ? [] : [`set: ${JSON.stringify(set)}\n`]),
  ];
  const items = parts.map(({ text }) => text).join('');
  return `${lines.join('')}schedules:\n${items}${schedules.length === 0 ? '  []\n' : ''}`;
}
