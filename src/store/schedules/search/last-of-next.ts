import { asc, gt } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { schedules } from '../../../postgres/schema.ts';

/** The id of the last of the next so many schedules, whatever these are; null: there are fewer. */
export async function lastOfNext(
  db: Executor,
  count: number,
  after: string | undefined,
): Promise<string | null> {
  const beyond = after === undefined ? undefined : gt(schedules.id, after);
  const ids = db.select({ id: schedules.id }).from(schedules).where(beyond).orderBy(asc(schedules.id));
  const [last] = await ids.offset(count - 1).limit(1);
  return last?.id ?? null;
}
