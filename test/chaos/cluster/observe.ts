import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Instance } from './instance.ts';

/** How often its tick has come round; NaN where it does not answer. */
export async function ticksOf({ url }: Instance): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(30_000) }).catch(() => null);
  const text = (await answer?.text()) ?? '';
  return Number(/^firelock_tick_duration_seconds_count\S* (\d+)/m.exec(text)?.[1] ?? NaN);
}

/** What the API counts; null where it does not. */
export async function statsOf(instances: readonly Instance[]): Promise<Record<string, unknown> | null> {
  const [first] = instances;
  const answer = await fetch(`${first?.url ?? ''}/api/v1/stats`, {
    signal: AbortSignal.timeout(60_000),
  }).catch(() => null);
  if (answer?.status !== 200) {
    await answer?.text();
    return null;
  }
  return (await answer.json()) as Record<string, unknown>;
}

/** The ids under which each instance registered, oldest first, from their logs. */
export async function identitiesOf(
  instances: readonly Instance[],
  directory: string,
): Promise<Map<string, string[]>> {
  const identities = new Map<string, string[]>();
  for (const { name } of instances) {
    const log = await readFile(join(directory, `instance-${name}.log`), 'utf8').catch(() => '');
    const found = log.matchAll(/"instanceId":"([\da-f-]{36})"[^\n]*registered as/g);
    identities.set(
      name,
      [...found].map(([, id]) => id ?? ''),
    );
  }
  return identities;
}
