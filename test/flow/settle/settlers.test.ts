import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { parseScopeShares } from '../../../src/core/access/scope-shares.ts';
import { createSettlers } from '../../../src/flow/settlers.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { storeOfTest } from '../../support/of-test.ts';
import { until } from '../../support/until.ts';

const [SHARES] = parseScopeShares('a.:1,b.:1');
const NO_WAKE = {
  effects: () => undefined,
  dispatch: () => undefined,
  workers: () => undefined,
  admission: () => undefined,
  alerts: () => undefined,
};

it('the outcome of one of very many runs of a scope is written by a loop of its own, and flushed with the others', async () => {
  const { database } = await storeOfTest();
  const { settler, settlerOfMany } = createSettlers({
    ...{ database, clock: systemClock, events: createEventBus(), wake: NO_WAKE, scopeShares: SHARES },
    ...{ commits: { note: () => undefined }, concurrency: 8 },
  });
  const settled: string[] = [];
  const add = (name: string, isOfMany: boolean) => {
    const runId = randomUUID();
    const at = Date.now();
    settler.add({
      isOfMany,
      run: { id: runId, scheduleId: name, notifierId: null, firstClaimedAt: 0, isLimited: false },
      onSettled: () => settled.push(name),
      // It has no row: so it is refused, which settles it too.
      outcome: {
        ...{ runId, instanceId: randomUUID(), attempt: 1, outcome: 'rejected' },
        ...{ startedAt: at, finishedAt: at, latenessMs: 0, recovery: false, lookup: null, sent: true },
        settlement: {
          ...{ status: 'failed', failures: 0, retryAt: null, executionId: null, statusCode: 200, body: '' },
          ...{ error: null, doubt: null, leaseSeconds: null },
        },
      },
    });
  };
  add('few', false);
  add('many', true);
  await settler.start();
  await until(() => settled.length > 0 || null);
  expect(settled).toEqual(['few']);
  await settlerOfMany?.start();
  await settler.flush();
  expect(settled).toEqual(['few', 'many']);
  await Promise.all([settler.stop(), settlerOfMany?.stop()]);
});

it('without scopes there is one loop', async () => {
  const { database } = await storeOfTest();
  const { settlerOfMany } = createSettlers({
    ...{ database, clock: systemClock, events: createEventBus(), wake: NO_WAKE, scopeShares: [] },
    ...{ commits: { note: () => undefined }, concurrency: 8 },
  });
  expect(settlerOfMany).toBeNull();
});
