import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { beforeEach, describe, expect, it } from 'vitest';
import { isUnavailable } from '../../../src/postgres/errors.ts';
import { instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';

const url = 'http://127.0.0.1:9/';
let store: Store;
let instance: TestInstance;

beforeEach(async () => {
  store = await storeOfTest();
  instance = await instanceOfTest(store);
});

const runs = () =>
  store.rows<{ status: string; reason: string | null }>(sql`SELECT * FROM all_runs ORDER BY scheduled_for`);
const rewind = (seconds: number) =>
  store.rows(sql`UPDATE schedules SET next_occurrence_at = date_trunc('second', clock_timestamp()) - make_interval(secs => ${seconds}),
    next_fire_at = date_trunc('second', clock_timestamp()) - make_interval(secs => ${seconds})`);

describe('an edit', () => {
  it('of very many schedules first records all fires that were due under their old definitions', async () => {
    const ids = Array.from({ length: 200 }, (_, index) => `s${index}`);
    await instance.putMany(ids, { url, cron: '* * * * * *' });
    await rewind(40);
    await instance.putMany(ids, { url, cron: '0 0 1 1 *' });
    const [count] = await store.rows<{ schedules: number; fires: number }>(
      sql`SELECT count(DISTINCT schedule_uid)::int AS schedules, count(*)::int AS fires FROM all_runs`,
    );
    expect(count?.schedules).toBe(200);
    expect(count?.fires).toBeGreaterThanOrEqual(200 * 41);
  });

  it('that pauses records the fires that were due before, and none after', async () => {
    await instance.put('a', { url, cron: '* * * * * *' });
    await rewind(3);
    const paused = await instance.put('a', { url, cron: '* * * * * *', enabled: false });
    expect(paused).toMatchObject({ status: 'paused', nextFireAt: null, version: 2 });
    expect((await runs()).length).toBeGreaterThanOrEqual(4);
    const recorded = (await runs()).length;
    const before = Date.now();
    const resumed = await instance.put('a', { url, cron: '* * * * * *' });
    expect(resumed.nextFireAt).toBeGreaterThan(before - 1000);
    expect(await runs()).toHaveLength(recorded);
  });

  it('that does not move fire times leaves the next one alone', async () => {
    const before = await instance.put('a', { url });
    const after = await instance.put('a', { url, labels: { team: 'billing' } });
    expect(after).toMatchObject({ version: 2, nextFireAt: before.nextFireAt });
    expect(await instance.put('a', { url, labels: { team: 'billing' } })).toMatchObject({ version: 2 });
  });

  it('of a schedule that is far behind is refused for now, and changes nothing', async () => {
    await instance.put('a', { url, cron: '* * * * * *' });
    await rewind(30 * 86_400);
    const edit = instance.put('a', { url, cron: '0 0 1 1 *' });
    await expect(edit).rejects.toThrow('being planned now');
    expect(await edit.catch(isUnavailable)).toBe(true);
    expect(await store.rows(sql`SELECT version FROM schedules`)).toEqual([{ version: 1 }]);
    expect(await runs()).toEqual([]);
  });
});

describe('a delete', () => {
  it('abandons open runs, also one that was due a moment ago, and keeps the versions', async () => {
    await instance.put('a', { url, cron: '* * * * * *' });
    await rewind(1);
    expect(await instance.remove('a')).toBe(true);
    expect(await instance.remove('a')).toBe(false);
    const left = await runs();
    expect(left.length).toBeGreaterThanOrEqual(2);
    expect(left.every((run) => run.status === 'abandoned' && run.reason === 'deleted')).toBe(true);
    const versions = await store.rows<{ change: string }>(sql`SELECT change FROM schedule_versions ORDER BY version`);
    expect(versions.map((row) => row.change)).toEqual(['created', 'deleted']);
  });

  it('abandons a run that changes from claimed to unclaimed meanwhile', async () => {
    await instance.put('a', { url, cron: '* * * * * *' });
    await rewind(1);
    await instance.put('a', { url, cron: '0 0 1 1 *' });
    await store.rows(sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = clock_timestamp(), attempts = 1
      WHERE scheduled_for = (SELECT max(scheduled_for) FROM all_runs)`);
    const other = postgres(store.url, { max: 1 });
    const deleting = await other.begin(async (tx) => {
      await tx`UPDATE runs SET claimed_by = NULL, claimed_at = NULL WHERE claimed_by IS NOT NULL`;
      await tx`SELECT FROM runs WHERE claimed_by IS NULL FOR UPDATE`;
      const pending = instance.remove('a');
      await until(async () => {
        const [row] = await store.rows<{ waiting: number }>(
          sql`SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted`,
        );
        return row && row.waiting > 0 ? true : null;
      });
      return { pending };
    });
    await deleting.pending;
    await other.end();
    expect((await runs()).every((run) => run.status === 'abandoned')).toBe(true);
  });

  it('and a re-creation at the same time each come wholly before or wholly after the other', async () => {
    const rounds = Array.from({ length: 60 }, (_, index) => index);
    await Promise.all(
      rounds.map((index) =>
        index % 2 === 0
          ? instance.remove('a')
          : instance.put('a', { url, description: `round ${index}` }).then(() => true),
      ),
    );
    const [row] = await store.rows<{ versions: number; gaps: number }>(
      sql`SELECT count(*)::int AS versions, count(*) FILTER (WHERE version <> place)::int AS gaps FROM (
        SELECT version, row_number() OVER (PARTITION BY schedule_uid ORDER BY version) AS place FROM schedule_versions) v`,
    );
    expect(row?.versions).toBeGreaterThan(0);
    expect(row?.gaps).toBe(0);
  });

  it('makes room for another schedule of the same id', async () => {
    const first = await instance.put('a', { url });
    await instance.remove('a');
    const second = await instance.put('a', { url });
    expect(second.version).toBe(1);
    expect(second.uid).not.toBe(first.uid);
  });
});

describe('where fires are delayed, an edit', () => {
  /** Its moment has just come, and it is delayed by minutes at least. */
  async function delayed(id: string) {
    for (let [tries, lead] = [0, 300]; tries < 50; tries += 1) {
      const startAt = Date.now() + lead;
      const daily = { url, cron: null, everySeconds: 86_400, startAt, jitterSeconds: 86_400 };
      const schedule = await instance.put(`${id}-${tries}`, daily);
      // This machine was too slow for it.
      if (schedule.nextOccurrenceAt !== startAt) lead *= 2;
      if (schedule.nextOccurrenceAt !== startAt || (schedule.nextFireAt ?? 0) < startAt + 600_000) continue;
      await until(() => (Date.now() > startAt + 10 ? true : null));
      return { ...schedule, daily };
    }
    throw new Error('none of them is delayed for long');
  }
  const due = () =>
    store.rows<{ status: string; due: number }>(
      sql`SELECT status, (extract(epoch FROM due_at) * 1000)::float8 AS due FROM all_runs`,
    );

  it('records the fire whose moment has come, with its delay, if the new definition moves it', async () => {
    const { id, daily, nextFireAt } = await delayed('moved');
    const edited = await instance.put(id, { ...daily, jitterSeconds: 0 });
    expect(await due()).toEqual([{ status: 'pending', due: nextFireAt }]);
    expect(edited.nextFireAt).toBe(edited.nextOccurrenceAt ?? 0);
    expect(edited.nextOccurrenceAt).toBeGreaterThan(Date.now());
  });

  it('that pauses drops it, and one that enables in time brings it back', async () => {
    const { id, daily, nextFireAt, nextOccurrenceAt } = await delayed('paused');
    await instance.put(id, { ...daily, enabled: false });
    expect(await due()).toEqual([]);
    const unpaused = await instance.put(id, daily);
    expect(unpaused).toMatchObject({ nextFireAt, nextOccurrenceAt });
  });

  it('of anything else leaves it as it is', async () => {
    const { id, daily, nextFireAt, nextOccurrenceAt } = await delayed('labelled');
    const edited = await instance.put(id, { ...daily, labels: { a: 'b' }, catchUp: 'all' });
    expect(edited).toMatchObject({ version: 2, nextFireAt, nextOccurrenceAt });
    expect(await due()).toEqual([]);
  });
});

describe('an edit after an outage', () => {
  it.each([
    ['skip', ['skipped missed']],
    ['latest', ['pending null']],
    ['all', ['skipped limit', 'pending null', 'pending null']],
  ] as const)('records what was missed by the old definition’s %s', async (catchUp, expected) => {
    const old = { url, cron: '0 * * * *', catchUp, catchUpLimit: 2, graceSeconds: 0 };
    await instance.put('edited', old);
    await rewind(4 * 3600);
    const before = Date.now();
    const edited = await instance.put('edited', { url, cron: '30 * * * *', catchUp: 'latest' });
    expect((await runs()).map(({ status, reason }) => `${status} ${reason}`)).toEqual(expected);
    expect(edited.nextFireAt).toBeGreaterThan(before - 1000);
  });

  it('is refused for now if more was missed than it can record', async () => {
    await instance.put('edited', { url, cron: '* * * * * *', graceSeconds: 86_400 });
    await rewind(3 * 3600);
    await expect(instance.put('edited', { url, cron: '0 * * * *' })).rejects.toThrow('being planned now');
    expect(await runs()).toEqual([]);
  });
});

describe('a schedule with one moment', () => {
  it('fires once and has ended, and an edit of its labels does not fire it again', async () => {
    const at = Date.now() - 1000;
    expect(await instance.put('once', { url, cron: null, at })).toMatchObject({
      status: 'active',
      nextFireAt: at,
    });
    await instance.start();
    await until(async () => ((await runs()).length === 1 ? true : null));
    const edited = await instance.put('once', { url, cron: null, at, labels: { a: 'b' } });
    expect(edited).toMatchObject({ status: 'ended', nextFireAt: null, lastFireAt: at });
    expect(await runs()).toHaveLength(1);
  });

  it('does not fire if its pause ends after it', async () => {
    const at = Date.now() - 1000;
    await instance.put('once', { url, cron: null, at, enabled: false });
    expect(await instance.put('once', { url, cron: null, at })).toMatchObject({
      status: 'ended',
      nextFireAt: null,
    });
  });
});
