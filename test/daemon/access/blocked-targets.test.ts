// @module-tag attack
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest } from '../../support/of-test.ts';
import { type DaemonHere, daemonHere } from '../../support/daemon-here.ts';
import { until } from '../../support/until.ts';

interface Run {
  status: string;
  attempts: number;
  failures: number;
  error: object | null;
  attemptLog: { outcome: string }[];
}

const database = eachTest(databaseOfTest);
const receiver = eachTest(receiverOfTest);

/** How runs to these URLs end, in the order of the URLs. */
async function endsOf(daemon: DaemonHere, urls: string[]): Promise<Run[]> {
  const items = urls.map((url, index) => ({ ref: `r${index}`, target: { type: 'http', url } }));
  const { status, body } = await daemon.call('POST', '/api/v1/runs/batch', { items });
  expect(status).toBe(201);
  const recorded = (body as { items: { ref: string; id: string }[] }).items;
  const ids = new Map(recorded.map(({ ref, id }) => [ref, id]));
  return until(async () => {
    const answers = items.map(({ ref }) => daemon.call('GET', `/api/v1/runs/${ids.get(ref) ?? ''}`));
    const runs = (await Promise.all(answers)).map((answer) => answer.body as Run);
    return runs.every((run) => run.status !== 'pending') ? runs : null;
  });
}

const BLOCKED = {
  status: 'failed',
  attempts: 1,
  failures: 0,
  error: { kind: 'blocked', message: 'the address of the target is blocked' },
  attemptLog: [{ outcome: 'blocked' }],
};

test('runs to denied addresses, to firelock itself and to its database fail, and only the log says why', async () => {
  const daemon = await daemonHere(database.url, {
    FIRELOCK_TARGET_DENY_CIDRS: 'default, 127.0.0.0/8',
    FIRELOCK_TARGET_ALLOW_CIDRS: '127.0.0.1',
  });
  const { port: receiverPort } = new URL(receiver.url);
  const { port } = new URL(database.url);
  const urls = [
    'http://169.254.169.254/latest/meta-data/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://0xa9fea9fe/',
    `http://127.0.0.1:${daemon.port}/api/v1/schedules`,
    `http://127.0.0.2:${receiverPort}/`,
    `http://localhost:${daemon.port}/healthz`,
    `http://[::ffff:127.0.0.1]:${daemon.port}/`,
    `http://[::1]:${daemon.port}/`,
    `http://127.0.0.1:${port}/`,
    `http://localhost:${port}/`,
  ];
  const runs = await endsOf(daemon, [...urls, receiver.url]);
  for (const [index, url] of urls.entries()) expect(runs[index], url).toMatchObject(BLOCKED);
  expect(runs.at(-1)).toMatchObject({ status: 'succeeded', error: null });

  const lines = daemon.log().filter(({ msg }) => msg.startsWith('a target was not called'));
  expect(lines.map(({ level }) => level)).toEqual(urls.map(() => 40));
  const reasons = lines.map(({ because }) => because);
  expect(reasons.filter((because) => because === 'firelock listens there')).toHaveLength(4);
  expect(reasons.filter((because) => because === 'the database is there')).toHaveLength(2);
  expect(lines.find(({ origin }) => origin === 'http://169.254.169.254')).toMatchObject({
    address: '169.254.169.254',
    because: 'it is in the denied range 169.254.0.0/16',
  });
  const metrics = await daemon.call('GET', '/metrics');
  expect(metrics.body).toContain(`firelock_handoffs_total{target="http",outcome="blocked"} ${urls.length}`);
});
