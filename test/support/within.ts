import { setTimeout as sleep } from 'node:timers/promises';

/** Whether the work was done in that time. */
export async function inTime(ms: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const { signal } = timer;
  try {
    return await Promise.race([work.then(() => true), sleep(ms, false, { signal })]);
  } finally {
    timer.abort();
  }
}

/** Rejects with `otherwise` if the work takes longer. */
export async function within<T>(ms: number, work: Promise<T>, otherwise: string): Promise<T> {
  if (await inTime(ms, work)) return work;
  throw new Error(`${otherwise} within ${Math.round(ms / 1000)} s`);
}
