import { pagingBody } from '../../src/core/alerts/texts/pagerduty-event.ts';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConnectionFields } from '../../src/core/connections/connection.ts';
import { keyIdsOfConnection, openConnection, sealConnection } from '../../src/core/connections/connection-secrets.ts';
import type { HttpTarget, Target } from '../../src/core/schedules/schedule.ts';
import { keyIdsIn, openTarget, sealTarget } from '../../src/core/schedules/target-secrets.ts';
import { CONNECTION_KIND } from '../../src/operations/named-kinds.ts';
import { putNamed } from '../../src/operations/named-changes.ts';
import { NOTIFIER_KIND } from '../../src/operations/notifier-changes.ts';
import { rotateSecrets } from '../../src/operations/rotate-secrets.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { CONNECTION_ROWS } from '../../src/store/connections/find-connections.ts';
import { findNamed } from '../../src/store/names/named-rows.ts';
import { NOTIFIER_ROWS } from '../../src/store/notifiers/rows.ts';
import { mintPingKeys, readPingKeys } from '../../src/store/runs/observed.ts';
import { sampleUsedKeys } from '../../src/store/secrets/secret-rows.ts';
import { opened, ringOf, SECRETS } from '../support/secrets.ts';
import { createInstance, createStore, type Store, type TestInstance } from '../support/pipeline.ts';
import { targetAt } from '../support/targets.ts';

const keyOf = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`;
const NEWER = ringOf(`${keyOf('newer', 9)},${keyOf('test', 7)}`);
const never = new AbortController().signal;

let store: Store;
let instance: TestInstance;
beforeAll(async () => {
  store = await createStore();
  instance = await createInstance(store);
});
afterAll(async () => {
  await instance.stop();
  await store.drop();
});

const targetWith = (value: string): Target =>
  targetAt('https://example.com/', { headers: { A: value }, secret: value });

/** Written twice: its values can be encrypted once its uid is known. */
async function put(id: string, ring = SECRETS): Promise<string> {
  const { uid } = await instance.put(id, { url: 'https://example.com/' });
  const { target } = sealTarget(targetWith(id), { ring, uid, before: null });
  await instance.put(id, { url: '', target });
  return uid;
}

const targetOf = async (uid: string) => {
  const rows = await store.rows<{ target: Target }>(
    sql`SELECT definition->'target' AS target FROM schedule_versions WHERE schedule_uid = ${uid} ORDER BY version DESC LIMIT 1`,
  );
  return rows[0]?.target ?? targetWith('');
};
const usedKeys = async () => (await store.database.run((db) => sampleUsedKeys(db, null))).values;

test('every readable value is encrypted with the first key, whatever else its definition contains', async () => {
  const uids = await Promise.all(['a', 'b', 'c'].map((id) => put(id)));
  const lost = await put('lost', ringOf(keyOf('lost', 3)));
  const broken = await put('broken');
  await store.rows(
    sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{target,lookup}', '{"url": 5, "headers": {"a": null}}')
    WHERE schedule_uid = ${broken} AND version = 2`,
  );
  expect((await usedKeys()).keyIds.sort()).toEqual(['lost', 'test']);

  const rotation = await rotateSecrets({ database: store.database, secrets: NEWER, signal: never });
  expect(rotation.byKey).toEqual(
    new Map([
      ['lost', 2],
      ['newer', 6],
    ]),
  );
  expect(rotation.unreadable.map(({ what }) => what)).toEqual([`version 2 of ${broken}`]);
  for (const uid of uids) {
    const target = await targetOf(uid);
    expect(keyIdsIn(target)).toEqual(['newer', 'newer']);
    expect(() => opened(uid, target)).toThrow('key "newer"');
  }
  expect(keyIdsIn(await targetOf(lost))).toEqual(['lost', 'lost']);
  expect((await usedKeys()).keyIds.sort()).toEqual(['lost', 'newer', 'test']);
});

test('the values and files of connections are encrypted anew too, at the version that they have', async () => {
  const deps = { database: store.database, events: createEventBus(), secrets: SECRETS, scope: null };
  const token = { file: 'token', seal: null };
  const put = () =>
    putNamed(deps, CONNECTION_KIND, 'rotated', (before, uid) => {
      const given: ConnectionFields = {
        ...{ url: 'https://api.example', urlSeal: null, headers: { keyId: 'secret' }, tls: null },
        auth: { type: 'bearer', token },
      };
      return {
        content: { description: null, ...sealConnection(given, { ring: SECRETS, uid, before }).fields },
      };
    });
  const { thing: connection } = await put();
  expect(keyIdsOfConnection(connection)).toEqual(['test', 'test', 'test']);
  await store.rows(sql`UPDATE schedule_versions SET definition = definition - 'target'`);
  expect((await usedKeys()).keyIds).toEqual(['test']);

  const rotation = await rotateSecrets({ database: store.database, secrets: NEWER, signal: never });
  expect([rotation.rotated, rotation.byKey.get('newer')]).toEqual([3, 3]);
  const found = await store.database.run((db) => findNamed(db, CONNECTION_ROWS, { id: 'rotated' }));
  expect(found && keyIdsOfConnection(found)).toEqual(['newer', 'newer', 'newer']);
  expect(found?.version).toBe(1);
  expect(found && openConnection(NEWER, found, (name) => name)).toMatchObject({
    headers: { keyId: 'secret' },
    auth: { token: 'token' },
  });
  expect((await usedKeys()).keyIds).toEqual(['newer']);

  await store.rows(sql`UPDATE connections SET definition = '{"headers": null}'`);
  const broken = await rotateSecrets({ database: store.database, secrets: NEWER, signal: never });
  expect(broken.unreadable.map(({ what }) => what)).toEqual(['connection rotated']);
});

test('the routing keys and header values of notifiers are too', async () => {
  const deps = {
    database: store.database,
    events: createEventBus(),
    wake: instance.pipeline.wake,
    scope: null,
  };
  const http = {
    ...targetAt('https://events.example/v2', { headers: { A: 'one' } }),
    type: 'http',
  } as HttpTarget;
  const { thing: notifier } = await putNamed(deps, NOTIFIER_KIND, 'rotated', (_before, uid) => {
    const given: HttpTarget = { ...http, body: pagingBody('two') };
    const { target } = sealTarget(given, { ring: SECRETS, uid, before: null });
    return {
      content: {
        ...({ description: null, enabled: true, on: ['failed'], filter: { ids: [], label: [] } } as const),
        ...({ channel: 'pagerduty', remindSeconds: null, afterFailures: 1, fallback: null, target } as const),
      },
    };
  });
  expect((await usedKeys()).keyIds).toContain('test');
  await rotateSecrets({ database: store.database, secrets: NEWER, signal: never });
  const found = await store.database.run((db) => findNamed(db, NOTIFIER_ROWS, { id: 'rotated' }));
  expect(found && keyIdsIn(found.target)).toEqual(['newer', 'newer']);
  expect(found && openTarget(NEWER, notifier.uid, found.target)).toMatchObject({
    headers: { A: 'one' },
    body: { secrets: { routingKey: 'two' } },
  });
  expect((await usedKeys()).keyIds).not.toContain('test');
});

test('it can be interrupted between two batches, and needs a key', async () => {
  const { database } = store;
  await expect(rotateSecrets({ database, secrets: NEWER, signal: AbortSignal.abort() })).rejects.toThrow();
  const secrets = { ...NEWER, sealsWith: null };
  await expect(rotateSecrets({ database, secrets, signal: never })).rejects.toThrow('FIRELOCK_SECRET_KEYS');
});

test('keys of observed schedules are encrypted anew, and stay what they are', async () => {
  const { uid } = await instance.put('observed', { url: '', observe: { until: null } });
  const [minted] = await store.database.transaction((tx) => mintPingKeys(tx, SECRETS, [uid]));
  const keyBy = async (ring: typeof SECRETS) =>
    (await store.database.run((db) => readPingKeys(db, ring, [uid]))).get(uid);
  await rotateSecrets({ database: store.database, secrets: NEWER, signal: never });
  const [row] = await store.rows(sql`SELECT key->>'keyId' AS id FROM ping_keys`);
  expect(row).toEqual({ id: 'newer' });
  expect([await keyBy(NEWER), await keyBy(SECRETS)]).toEqual([minted, undefined]);
  expect((await usedKeys()).keyIds).toContain('newer');
});
