import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Instance } from '../cluster/instance.ts';

/** What daemons say of commits that were confirmed and are gone. */
export interface Told {
  logLines: number;
  /** All of their counters together. */
  metric: number;
}

/** How often they have counted it, since each was started. */
export async function countedBy(instances: readonly Instance[]): Promise<number> {
  const counts = instances.map(async ({ url }) => {
    const text = await fetch(`${url}/metrics`).then((answer) => answer.text());
    return Number(/^firelock_database_went_back_total\S* (\d+)/m.exec(text)?.[1] ?? NaN);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** How often their logs say it. Where nothing was found the logs are gone. */
export async function loggedIn(directory: string, instances: number): Promise<number> {
  const logs = Array.from({ length: instances }, (_, index) =>
    readFile(join(directory, `instance-${index + 1}.log`), 'utf8').catch(() => ''),
  );
  const lines = (await Promise.all(logs)).flatMap((log) => log.split('\n'));
  return lines.filter((line) => line.includes('the database lost commits that it had confirmed')).length;
}
