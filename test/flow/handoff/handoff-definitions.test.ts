import { expect, it } from 'vitest';
import { NO_DEFINITION } from '../../../src/core/schedules/schedule.ts';
import { createHandoffDefinitions } from '../../../src/flow/handoff/handoff-definitions.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { editionKey } from '../../../src/store/schedules/schedule-versions.ts';
import { SECRETS } from '../../support/secrets.ts';
import { targetAt } from '../../support/targets.ts';

it('what is kept of definitions is bounded in bytes, and a placeholder of a body weighs what it takes once it is compiled', async () => {
  const keptOf = async (template: string) => {
    const keys = Array.from({ length: 500 }, (_, version) => ({
      scheduleUid: 'u',
      version,
      edition: `e${version}`,
    }));
    const target = targetAt('http://127.0.0.1/', { body: { template, contentType: 'text/plain' } });
    const stored = new Map(keys.map((key) => [editionKey(key as never), { ...NO_DEFINITION, payload: null, target }]));
    const database = { run: () => Promise.resolve(stored) } as unknown as Database;
    const definitions = createHandoffDefinitions(database, SECRETS);
    const loaded = await definitions.load(keys as never);
    expect(loaded.size).toBe(keys.length);
    return keys.filter((key) => definitions.known(key as never) !== undefined).length;
  };
  expect(await keptOf('x')).toBe(500);
  expect(await keptOf('x'.repeat(1024))).toBe(500);
  expect(await keptOf('{{runId}}'.repeat(7_000))).toBeLessThan(32);
});
