// @module-tag long
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { firelock } from '../../cli/cli.ts';
import { type DaemonHere, daemonHere } from '../../support/daemon-here.ts';
import { LONG } from '../../support/runner/long.ts';
import { until } from '../../support/until.ts';

const keyOf = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`;
const [OLD, NEW] = [keyOf('old', 1), keyOf('new', 2)];
const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const FAR = { cron: '0 12 29 2 *', retry: { maxAttempts: 1 } };

const database = eachTest(databaseOfTest);
const receiver = eachTest(receiverOfTest);
const sql = eachTest(() => sqlOfTest(database.url, 2));

const daemonWith = (keys: string) =>
  daemonHere(database.url, { FIRELOCK_SECRET_KEYS: keys, FIRELOCK_TICK_INTERVAL_MS: '50' });

async function rotate(keys: string) {
  const around = { databaseUrl: database.url, env: { FIRELOCK_SECRET_KEYS: keys } };
  const { code, out, err } = await firelock(['rotate-secrets'], around);
  return { code, out: out + err };
}

const put = (daemon: DaemonHere, id: string, more: object = {}) =>
  daemon.call('PUT', `/api/v1/schedules/${id}`, {
    ...FAR,
    ...more,
    target: { type: 'http', url: receiver.url, headers: { 'x-key': `value of ${id}` }, secret: SECRET },
  });

interface Run {
  id: string;
  status: string;
  error: { message: string } | null;
}

async function endOf(daemon: DaemonHere, id: string): Promise<Run> {
  return until(async () => {
    const { body } = await daemon.call('GET', `/api/v1/runs/${id}`);
    return (body as Run).status === 'pending' ? null : (body as Run);
  });
}

async function fire(daemon: DaemonHere, id: string): Promise<Run> {
  const { body } = await daemon.call('POST', `/api/v1/schedules/${id}/fire`);
  return endOf(daemon, (body as Run).id);
}

test(
  'secrets of all versions are encrypted anew while instances run, and the old key is not needed any more',
  { tags: [LONG] },
  async () => {
    const daemon = await daemonWith(`${OLD},${NEW}`);
    for (const id of ['a', 'b', 'held']) await put(daemon, id);
    await put(daemon, 'a', { description: 'second' });
    await daemon.call('DELETE', '/api/v1/schedules/b');
    const target = { type: 'http', url: receiver.url, headers: { 'x-key': 'value of once' } };
    const later = { target, runAt: '2090-01-01T00:00:00Z', key: 'once' };
    const { body: waiting } = await daemon.call('POST', '/api/v1/runs', later);

    // What another transaction has locked is left, and said.
    const holder = await sql.reserve();
    await holder`BEGIN`;
    await holder`SELECT FROM schedule_versions WHERE schedule_id = 'held' FOR UPDATE`;
    const held = await rotate(`${NEW},${OLD}`);
    expect(held.code).toBe(1);
    expect(held.out).toMatch(
      /encrypted with key old: \d+, which could not be decrypted or were locked; run the command again/,
    );
    await holder`COMMIT`;
    holder.release();

    const done = await rotate(`${NEW},${OLD}`);
    expect([done.code, done.out]).toEqual([0, expect.stringContaining('values encrypted with key old: 0;')]);
    // Versions of a: 4 values; of b, which was deleted: 4; of held: 2; of the one-off run: 1.
    expect(done.out).toContain('values encrypted with key new: 11\n');
    expect(await rotate(`${NEW},${OLD}`)).toMatchObject({
      code: 0,
      out: expect.stringContaining('re-encrypted with key new: 0\n') as string,
    });
    const [left] = await sql<{ old: number; plain: number }[]>`SELECT
    count(*) FILTER (WHERE definition::text LIKE '%"old"%')::int AS old,
    count(*) FILTER (WHERE definition::text LIKE '%value of%')::int AS plain FROM schedule_versions`;
    expect(left).toEqual({ old: 0, plain: 0 });

    // The instance goes on with what it had read, and another one needs the new key only.
    expect(await fire(daemon, 'a')).toMatchObject({ status: 'succeeded' });
    const other = await daemonWith(NEW);
    await daemon.stop();
    expect(await fire(other, 'held')).toMatchObject({ status: 'succeeded' });
    const again = await other.call('POST', '/api/v1/runs', later);
    expect([again.status, again.body]).toMatchObject([200, { id: (waiting as Run).id }]);
    const values = receiver.arrivals.map(({ headers }) => headers['x-key']);
    expect(values).toEqual(['value of a', 'value of held']);
  },
);

test(
  'a run whose key is gone fails and names the key, beside others that do not; with the key it can be opened again',
  { tags: [LONG] },
  async () => {
    const first = await daemonWith(OLD);
    await put(first, 'locked');
    await first.stop();

    const without = await daemonWith(NEW);
    await put(without, 'other');
    const [locked, other] = await Promise.all([fire(without, 'locked'), fire(without, 'other')]);
    expect(locked.status).toBe('failed');
    expect(locked.error?.message).toBe(
      'nothing was sent: /target/headers/x-key is encrypted with the key "old", which FIRELOCK_SECRET_KEYS does not have',
    );
    expect(other).toMatchObject({ status: 'succeeded' });
    expect(receiver.arrivals).toHaveLength(1);
    const warned = await until(async () => {
      const { status, body } = await without.call('GET', '/readyz');
      const warnings = (body as { warnings: string[] }).warnings.filter((one) => one.includes('FIRELOCK_SECRET_KEYS'));
      return warnings.length > 0 ? { status, warnings } : null;
    });
    expect(warned).toMatchObject({
      status: 200,
      warnings: [expect.stringContaining('FIRELOCK_SECRET_KEYS (1)')],
    });
    expect(await without.logged(/encrypted with keys missing in FIRELOCK_SECRET_KEYS/)).toMatchObject({
      level: 50,
      keyIds: ['old'],
    });
    expect(await rotate(NEW)).toMatchObject({
      code: 1,
      out: expect.stringContaining('encrypted with key old, which is not in FIRELOCK_SECRET_KEYS: 2\n') as string,
    });

    const back = await daemonWith(`${NEW},${OLD}`);
    await without.stop();
    await back.call('POST', `/api/v1/runs/${locked.id}/retry`);
    expect(await endOf(back, locked.id)).toMatchObject({ status: 'succeeded', error: null });
    expect(receiver.arrivals[1]?.headers['x-key']).toBe('value of locked');
  },
);

test('without a key, there is nothing to encrypt with', async () => {
  expect(await rotate('')).toMatchObject({
    code: 1,
    out: expect.stringContaining('FIRELOCK_SECRET_KEYS') as string,
  });
});
