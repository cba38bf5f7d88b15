import { describe, expect, test } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { append, claimedRun, complete, readPart } from '../../support/run-logs.ts';
import { until } from '../../support/until.ts';
import { newToken } from '../access/support.ts';
import { type Api, quietApi, startApi } from '../api.ts';

const api = quietApi();
const WAIT = 'attempt=1&waitSeconds=60';

const waiters = (count: number, at: Pick<Api, 'logFollowers'> = api) =>
  until(() => (at.logFollowers.waiting() === count ? true : null));

describe('who follows a log', () => {
  test('is answered as soon as there is more, and asks the database nothing meanwhile', async () => {
    const run = await claimedRun(api);
    api.statements.length = 0;
    const waiting = readPart(api, run.id, WAIT);
    await waiters(1);
    expect(api.statements).toEqual(['findLoggedRun', 'readLogPart']);
    await append(api, run, 'more');
    expect(await waiting).toMatchObject({ bytes: Buffer.from('more'), next: 4, isComplete: false });
    // What is there is answered at once.
    expect((await readPart(api, run.id, WAIT)).bytes.toString()).toBe('more');
  });

  test('shares what is read with all others who follow it', async () => {
    const run = await claimedRun(api);
    api.statements.length = 0;
    const waiting = Array.from({ length: 50 }, () => readPart(api, run.id, WAIT));
    await waiters(50);
    api.statements.length = 0;
    await append(api, run, 'more');
    for (const part of await Promise.all(waiting)) expect(part.bytes.toString()).toBe('more');
    expect(api.statements.filter((name) => name === 'readLogPart')).toHaveLength(1);
  });

  test('hears of what another instance takes, and of the end', async () => {
    const run = await claimedRun(api);
    const other = await startApi(api.databaseUrl);
    try {
      const first = readPart(api, run.id, WAIT);
      await waiters(1);
      await append(other, run, 'more');
      expect(await first).toMatchObject({ next: 4, isComplete: false });
      const second = readPart(api, run.id, `${WAIT}&offset=4`);
      await waiters(1);
      await complete(other, run);
      expect(await second).toMatchObject({ bytes: Buffer.of(), next: 4, isComplete: true });
    } finally {
      await other.stop();
    }
  });

  test('stays with the attempt that was the newest, and hears that it is over', async () => {
    const run = await claimedRun(api);
    const waiting = readPart(api, run.id, 'waitSeconds=60');
    await waiters(1);
    await changeRun(api.sql, run.id, { attempts: 2, claimed_by: null });
    expect(await waiting).toMatchObject({ attempt: 1, isComplete: true });
  });

  test('is told so where too many wait already, and is answered with what there is when it is enough', async () => {
    const run = await claimedRun(api);
    const small = await startApi(api.databaseUrl, { mostLogFollowers: 1 });
    const waiting = readPart(small, run.id, WAIT);
    await waiters(1, small);
    expect(await readPart(small, run.id, WAIT)).toMatchObject({ status: 503 });
    expect(await readPart(small, run.id, 'waitSeconds=0')).toMatchObject({ status: 200 });
    await small.stop();
    expect(await waiting).toMatchObject({ status: 200, next: 0, isComplete: false });
  });

  test('gets nothing any more once its token is revoked', async () => {
    const token = newToken('reader', 'viewer');
    const asked = await startApi(api.databaseUrl, { apiTokens: [token.known], limits: { lookEveryMs: 10 } });
    try {
      const run = await claimedRun(api);
      const waiting = readPart(asked, run.id, WAIT, token.headers);
      await waiters(1, asked);
      asked.access.replaceTokens([]);
      expect(await waiting).toMatchObject({ status: 401 });
    } finally {
      await asked.stop();
    }
  });
});
