import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Expect } from '../../../src/core/schedules/expect.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { until } from '../../support/until.ts';

const NONE: Expect = {
  startWithinSeconds: null,
  finishWithinSeconds: null,
  atLeastSeconds: null,
  result: null,
};
const ROWS: Expect = { ...NONE, result: [{ pointer: '/rows', min: 1, max: null, json: null }] };

const store = eachTest(storeOfTest);
const receiver = eachTest(() =>
  receiverOfTest((_, response) => {
    refusals -= 1;
    if (refusals >= 0) response.writeHead(503).end();
    else response.end(answer);
  }),
);
const instance = eachTest(() => instanceOfTest(store));
let answer: string;
/** How often it answers 503 first. */
let refusals: number;

beforeEach(async () => {
  [answer, refusals] = ['{"rows":0}', 0];
  const { settler, dispatcher } = instance.pipeline;
  for (const service of [settler, dispatcher]) await service.start();
});

const put = (given: object) => instance.put('job', { url: receiver.url, ...given });

async function fired() {
  const { id } = await instance.fire('job');
  return until(async () => {
    const [row] = await store.rows<{ status: string; unmet: string[] | null; reason: string | null }>(
      sql`SELECT status, to_json(unmet) AS unmet, unmet_reason AS reason FROM history WHERE id = ${id}`,
    );
    return row ?? null;
  });
}

const alerts = () =>
  store.rows<{ is_open: boolean }>(sql`SELECT kind, error, until IS NULL AS is_open FROM alerts ORDER BY since, kind`);

describe('a success', () => {
  it('whose answer has not what is expected stays one, opens an episode that says why; the next that has it heals', async () => {
    await put({ expect: ROWS });
    await instance.pipeline.alertEffects.start();
    const reason = 'its result at "/rows" is less than 1';
    expect(await fired()).toEqual({ status: 'succeeded', unmet: ['result'], reason });
    await until(async () => ((await alerts()).length > 0 ? true : null));
    expect(await alerts()).toEqual([{ kind: 'result', error: reason, is_open: true }]);
    expect(instance.events).toContainEqual({
      type: 'runsUnmet',
      runs: [expect.objectContaining({ scheduleId: 'job', bound: 'result' })],
    });
    answer = '{"rows":3}';
    expect(await fired()).toEqual({ status: 'succeeded', unmet: null, reason: null });
    await until(async () => ((await alerts()).some(({ is_open }) => !is_open) ? true : null));
  });

  it('is judged by up to 64 KiB of an answer, of which 4 KiB are kept', async () => {
    await put({ expect: ROWS });
    answer = `{"x":"${'x'.repeat(60_000)}","rows":3}`;
    expect(await fired()).toMatchObject({ unmet: null });
    answer = `{"x":"${'x'.repeat(66_000)}","rows":3}`;
    expect(await fired()).toMatchObject({
      unmet: ['result'],
      reason: 'its result is longer than 64 KiB, of which nothing is judged',
    });
    const [row] = await store.rows(sql`SELECT max(length(result_body)) AS kept FROM history`);
    expect(row).toEqual({ kept: 4096 });
  });

  it('at the first attempt is too fast, and so is one after a failure, unless that was long ago', async () => {
    const retry = { maxAttempts: 5, minBackoffSeconds: 0, maxBackoffSeconds: 0 };
    await put({ expect: { ...NONE, atLeastSeconds: 3600 }, retry });
    expect(await fired()).toMatchObject({ status: 'succeeded', unmet: ['tooFast'], reason: null });
    refusals = 1;
    expect(await fired()).toMatchObject({ status: 'succeeded', unmet: ['tooFast'] });
  });

  it('another end is judged by neither', async () => {
    refusals = 1;
    await put({
      expect: { ...ROWS, atLeastSeconds: 3600 },
      retry: { maxAttempts: 1, minBackoffSeconds: 0, maxBackoffSeconds: 0 },
    });
    expect(await fired()).toEqual({ status: 'failed', unmet: null, reason: null });
  });
});
