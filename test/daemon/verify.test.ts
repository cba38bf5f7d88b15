// @module-tag long
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest } from '../support/of-test.ts';
import { daemonHere } from '../support/daemon-here.ts';
import { readyDaemon } from '../support/daemon.ts';

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest((_, response) => {
    calls += 1;
    response.statusCode = calls % 5 === 0 ? 503 : 200;
    response.end('{}');
  }),
);
let calls = 0;

test('two busy daemons, one of which is killed, violate nothing', async () => {
  const url = database.url;
  const [survivor, victim] = await Promise.all([daemonHere(url), readyDaemon(url)]);
  const target = { type: 'http', url: receiver.url };
  await survivor.call('PUT', '/api/v1/limits/few', { maxRunning: 2 });
  await survivor.call('POST', '/api/v1/schedules/batch', {
    items: [
      ...['allow', 'skip', 'queue', 'replace'].map((overlap) => ({
        id: overlap,
        everySeconds: 1,
        overlap,
        target,
      })),
      ...[1, 2, 3].map((n) => ({ id: `limited-${n}`, everySeconds: 1, limit: 'few', target })),
      { id: 'following', after: { scheduleId: 'allow' }, target },
      { id: 'pulled', everySeconds: 1, target: { type: 'pull', queue: 'q' } },
    ],
  });
  await survivor.call('POST', '/api/v1/runs/batch', {
    items: [
      { ref: 'first', target },
      { ref: 'second', target, dependsOn: ['first'] },
    ],
  });
  const verify = async () => {
    const { status, body } = await survivor.call('GET', '/api/v1/verify');
    const { ok, checks } = body as { ok: boolean; checks: { violations: number; complete: boolean }[] };
    expect([status, checks.filter((check) => check.violations > 0 || !check.complete)]).toEqual([200, []]);
    expect(ok).toBe(true);
  };
  for (const arrivals of [9, 18]) {
    await receiver.arrived(arrivals);
    await verify();
    if (arrivals === 9) victim.signal('SIGKILL');
  }
});
