import { sql } from 'drizzle-orm';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { isoInstant, LATEST } from '../../../src/core/instant.ts';
import type { ConnectionFields } from '../../../src/core/connections/connection.ts';
import { hasDay } from '../../../src/core/exclusions/day-set.ts';
import { putNamed } from '../../../src/operations/named-changes.ts';
import { NOTIFIER_KIND, testNotifier } from '../../../src/operations/notifier-changes.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { readCalendars, shareFreeCalendars } from '../../../src/store/calendars/calendar-histories.ts';
import { claimIfReady } from '../../../src/store/runs/claims/claim-if-ready.ts';
import { claimOf, startHandoffsIfClaimed } from '../../../src/store/runs/claims/held-claims.ts';
import { putConnection, putDates } from '../../support/named.ts';
import { askingForCertificates, createAuthority } from '../../support/certificates.ts';
import { EVERY_SECOND } from '../../support/fires.ts';
import { standbyOf } from '../../support/lost-commits.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { targetAt } from '../../support/targets.ts';

/**
 * A failover that lost commits: an edit to version 2 was used, the new primary does not have it, and another edit makes version 2.
 */
const store = eachTest(storeOfTest);
const receiver = eachTest(() => receiverOfTest((_, response) => response.end('{}')));
const instance = eachTest(() => instanceOfTest(store));

beforeEach(async () => {
  await instance.start();
});

/** Edits to `first`, uses it, loses the edits to `LOST` with what followed from them, edits to `NEW` and uses that. */
async function failOver(edit: (word: string) => Promise<unknown>, use: () => Promise<unknown>) {
  await edit('first');
  await use();
  const standby = await standbyOf(store);
  await edit('LOST');
  await use();
  await standby.promote();
  await edit('NEW');
  await use();
}

/** How many arrivals there are once `act` has led to another one. */
async function arrived(act: () => Promise<unknown>): Promise<void> {
  const before = receiver.arrivals.length;
  await act();
  await receiver.arrived(before + 1);
}

const paths = () => receiver.arrivals.map(({ path }) => path);

it('a schedule that was edited anew after its last edit was lost is fired by the new edit, not by the lost one', async () => {
  await failOver(
    (word) => instance.put('job', { url: `${receiver.url}/${word}` }),
    () => arrived(() => instance.fire('job')),
  );
  expect(paths()).toEqual(['/first', '/LOST', '/NEW']);
});

it('so are runs that are sent as they are recorded, and definitions that were read ahead', async () => {
  const { readAhead } = instance.pipeline;
  onTestFinished(() => readAhead.stop());
  await readAhead.start();
  let last = '';
  const put = (enabled: boolean) =>
    instance.put('job', { url: `${receiver.url}/${last}`, cron: EVERY_SECOND, enabled });
  await failOver(
    (word) => {
      last = word;
      return put(true);
    },
    async () => {
      readAhead.wake();
      await arrived(() => Promise.resolve());
      await put(false);
    },
  );
  expect([...new Set(paths())]).toEqual(['/first', '/LOST', '/NEW']);
});

/** A schedule whose target is the connection, fired until it has arrived. */
async function throughConnection(more = {}): Promise<() => Promise<unknown>> {
  await connect({ url: receiver.url });
  await instance.put('job', { url: '', target: targetAt('/hook', { connection: 'api' }), ...more });
  return () => instance.fire('job');
}

const connect = (given: Partial<ConnectionFields> & { url: string }): Promise<unknown> =>
  putConnection({ database: store.database, events: createEventBus() }, 'api', given);

it('the headers of a connection are those of the new edit', async () => {
  const fire = await throughConnection();
  await failOver(
    (word) => connect({ url: receiver.url, headers: { 'X-Edit': word } }),
    () => arrived(fire),
  );
  expect(receiver.arrivals.map(({ headers }) => headers['x-edit'])).toEqual(['first', 'LOST', 'NEW']);
});

it('its access token is that of the client of the new edit', async () => {
  const tokens = await receiverOfTest(({ headers }, response) => {
    const [, credentials = ''] = (headers.authorization ?? '').split(' ');
    const [clientId = ''] = Buffer.from(credentials, 'base64').toString().split(':');
    response.end(JSON.stringify({ access_token: `of-${clientId}`, token_type: 'Bearer', expires_in: 3600 }));
  });
  const fire = await throughConnection();
  const client = { clientSecret: 'the same', scope: null, audience: null };
  await failOver(
    (clientId) =>
      connect({
        url: receiver.url,
        auth: { type: 'oauth2', tokenUrl: `${tokens.url}/token`, clientId, ...client },
      }),
    () => arrived(fire),
  );
  expect(receiver.arrivals.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer of-first',
    'Bearer of-LOST',
    'Bearer of-NEW',
  ]);
});

it('its client certificate is that of the new edit, over a connection of its own', async () => {
  const authority = createAuthority();
  const { url, seen } = await askingForCertificates(authority);
  const fire = await throughConnection();
  await failOver(
    (word) => connect({ url, tls: { ca: authority.ca, ...authority.issue(word) } }),
    async () => {
      const before = seen.length;
      await fire();
      await expect.poll(() => seen.length, { timeout: 60_000 }).toBe(before + 1);
    },
  );
  expect(seen).toEqual(['first', 'LOST', 'NEW']);
});

it('a message of a notifier goes where the new edit says', async () => {
  const { wake } = instance.pipeline;
  const deps = { database: store.database, events: createEventBus(), wake, scope: null };
  const about = { description: null, enabled: true, on: [], filter: { ids: [], label: [] } } as const;
  const rest = {
    ...about,
    channel: 'webhook',
    remindSeconds: null,
    afterFailures: 1,
    fallback: null,
  } as const;
  await failOver(
    (word) =>
      putNamed(deps, NOTIFIER_KIND, 'ops', () => ({
        content: { ...rest, target: targetAt(`${receiver.url}/${word}`) },
      })),
    () => arrived(() => testNotifier(deps, 'ops')),
  );
  expect(paths()).toEqual(['/first', '/LOST', '/NEW']);
});

it('what a calendar says is what the new edit says', async () => {
  const deps = { database: store.database, events: createEventBus(), retentionDays: 30 };
  const put = (dates: string[]) => putDates(deps, dates, 'c');
  const said = () => store.database.run((db) => readCalendars(db, ['c'], LATEST));
  const excludes = async () => {
    const newest = (await said()).histories.get('c')?.versions.at(-1);
    return newest !== undefined && hasDay(newest.days, 20_000);
  };
  await put([]);
  const standby = await standbyOf(store);
  const { updatedAt } = await put(['2024-10-04']);
  const lost = await said();
  expect(await excludes()).toBe(true);
  await standby.promote();
  await put([]);
  // Even in the same millisecond.
  await store.rows(sql`UPDATE calendar_versions SET at = ${isoInstant(updatedAt)}::timestamptz WHERE version = 2`);
  expect(await excludes()).toBe(false);
  const shared = await store.database.transaction((tx) => shareFreeCalendars(tx, ['c']));
  expect(shared.get('c')).not.toBe(lost.editions.get('c'));
});

it('a claim that was lost is not taken for the one that was made anew, of the same attempt', async () => {
  const other = await instanceOfTest(store);
  const request = { instanceId: other.id, targetTypes: ['http'] };
  await instance.stop();
  await instance.put('job', { url: receiver.url });
  const { id } = await instance.fire('job');
  const standby = await standbyOf(store);
  const claim = async () => {
    const [run] = await store.database.run((db) => claimIfReady(db, [id], request));
    if (!run) throw new Error('it was not claimed');
    return claimOf(run);
  };
  const lost = await claim();
  await standby.promote();
  const made = await claim();
  expect(made).toMatchObject({ ...lost, claimedAt: expect.any(Number) as number });
  const start = (one: typeof lost) => store.database.run((db) => startHandoffsIfClaimed(db, [one], { bounded: false }));
  expect(await start(lost)).toEqual(new Set());
  expect(await start(made)).toEqual(new Set([id]));
});
