// @module-tag long
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, sqlOfTest } from '../../support/of-test.ts';
import { daemonHere } from '../../support/daemon-here.ts';
import { readyDaemon } from '../../support/daemon.ts';
import { until } from '../../support/until.ts';

const database = eachTest(databaseOfTest);
const sql = eachTest(() => sqlOfTest(database.url));

test('after an instance is killed in the middle of a bulk retry, the same call at another one does the rest', async () => {
  const [first, second] = await Promise.all([readyDaemon(database.url), daemonHere(database.url)]);
  const items = Array.from({ length: 250 }, (_, n) => ({
    ref: `r${n}`,
    target: { type: 'pull', queue: 'q' },
    timeoutSeconds: n + 1,
  }));
  const { body } = await first.call('POST', '/api/v1/runs/batch', { items });
  const ids = (body as { items: { id: string }[] }).items.map(({ id }) => id);
  await first.call('POST', '/api/v1/runs/bulk', { action: 'cancel', filter: { trigger: 'api' } });
  const retry = { action: 'retry', filter: { status: 'cancelled', trigger: ['api'] } };
  const count = async (status: string) => {
    const [row] = await sql<{ count: number }[]>`SELECT count(*)::int FROM all_runs WHERE status = ${status}`;
    return row?.count;
  };
  expect(await count('cancelled')).toBe(250);

  // It comes back to these runs, which another transaction has locked, and is killed meanwhile.
  const locked = ids.sort().slice(0, 40);
  await sqlOfTest(database.url).begin(async (tx) => {
    await tx`SELECT FROM history WHERE id = ANY (${locked}) FOR UPDATE`;
    const cutOff = first.call('POST', '/api/v1/runs/bulk', retry).catch(() => 'cut off');
    await until(async () => ((await count('pending')) === 210 ? true : null));
    first.signal('SIGKILL');
    await cutOff;
  });
  expect([await count('pending'), await count('cancelled')]).toEqual([210, 40]);

  const rest = await second.call('POST', '/api/v1/runs/bulk', retry);
  expect(rest.body).toMatchObject({ matched: 40, changed: 40, remaining: 0 });
  const claimed: string[] = [];
  while (claimed.length < 250) {
    const answer = await second.call('POST', '/api/v1/queues/q/claim', {
      workerId: 'w',
      max: 100,
      waitSeconds: 5,
    });
    const some = (answer.body as { items: { id: string }[] }).items.map(({ id }) => id);
    expect(some.length).toBeGreaterThan(0);
    claimed.push(...some);
  }
  expect(claimed.sort()).toEqual(ids);
});
