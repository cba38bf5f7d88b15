import type { SQL } from 'drizzle-orm';
import type { Instant } from '../core/instant.ts';
import type { Executor } from './executor.ts';

/** The rows of a statement written by hand, as the type its author says they have. */
export async function rowsOf<Row extends object>(db: Executor, statement: SQL): Promise<Row[]> {
  return [...(await db.execute(statement))] as unknown as Row[];
}

/** A `timestamptz` as the driver hands it over. */
export type InstantText = string;

export function toInstant(text: InstantText): Instant {
  return Date.parse(text);
}

export function toInstantOrNull(text: InstantText | null): Instant | null {
  return text === null ? null : Date.parse(text);
}

/** What stands for the id of a schedule in rows of one-off runs, and of their definitions. */
export const NO_SCHEDULE = '';

export function scheduleIdOf(text: string): string | null {
  return text === NO_SCHEDULE ? null : text;
}
