import { describe, expect, test, onTestFinished } from 'vitest';
import { changeRun } from '../../support/run-rows.ts';
import { type Claimed, append, claimAgain, claimedRun, complete, readLog, readPart } from '../../support/run-logs.ts';
import { type Api, quietApi, startApi, sharedApi } from '../api.ts';
import { until } from '../../support/until.ts';
import { newToken, settableClock } from '../access/support.ts';
import { ATTACK } from '../../support/runner/attack.ts';

const api = quietApi();
const KIB = 1024;

const rowsOf = async ({ id }: Claimed) =>
  api.sql<{ place: string; size: number }[]>`
    SELECT place, octet_length(bytes) AS size FROM run_logs WHERE run_id = ${id} ORDER BY attempt, place`;
/** Bytes of which each tells where it is. */
const numbered = (size: number, from = 0) => Buffer.from(Uint8Array.from({ length: size }, (_, n) => (from + n) % 251));

async function appendAll(run: Claimed, size: number, step = 64 * KIB): Promise<void> {
  for (let offset = 0; offset < size; offset += step) {
    const bytes = numbered(Math.min(step, size - offset), offset);
    expect(await append(api, run, bytes, { offset })).toMatchObject({
      status: 200,
      next: offset + bytes.length,
    });
  }
}

describe('what a worker appends', () => {
  test('is read as the bytes that it sent, also those that are no text, and characters that two appends share', async () => {
    const run = await claimedRun(api);
    const bytes = Buffer.concat([Buffer.from('größer €\n'), Buffer.from([0, 0xff, 0xc3, 0x28, 0x1b, 0])]);
    for (let offset = 0; offset < bytes.length; offset += 1)
      expect(await append(api, run, bytes.subarray(offset, offset + 1), { offset })).toMatchObject({
        next: offset + 1,
      });
    const part = await readPart(api, run.id);
    expect(part).toEqual({
      ...{ status: 200, bytes, next: bytes.length, skipped: 0, isComplete: false, attempt: 1 },
    });
    expect((await readPart(api, run.id, 'offset=3')).bytes).toEqual(bytes.subarray(3));
  });

  test('is answered alike when it comes again, and not written again', async () => {
    const run = await claimedRun(api);
    for (let times = 0; times < 2; times += 1)
      expect(await append(api, run, 'one two ')).toMatchObject({ status: 200, next: 8 });
    expect(await append(api, run, 'three', { offset: 8 })).toMatchObject({ next: 13 });
    expect(await append(api, run, 'one two ')).toMatchObject({ status: 200, next: 8 });
    // Its beginning is there already.
    expect(await append(api, run, 'three four', { offset: 8 })).toMatchObject({ next: 18 });
    expect((await readLog(api, run)).bytes.toString()).toBe('one two three four');
  });

  test('is written once where two instances take the same append at once', async () => {
    const run = await claimedRun(api);
    const other = await startApi(api.databaseUrl);
    onTestFinished(() => other.stop());
    for (let offset = 0; offset < 60; offset += 6) {
      const answers = await Promise.all(
        [api, other, api, other].map((one, n) => append(one, run, `by  ${n % 2};`, { offset })),
      );
      expect(answers.map(({ next }) => next)).toEqual(Array(4).fill(offset + 6));
    }
    expect((await readLog(other, run)).bytes.toString()).toMatch(/^(by {2}[01];){10}$/);
  });

  test('may begin beyond the end: what lies between counts as left out', async () => {
    const run = await claimedRun(api);
    await append(api, run, 'begin');
    expect(await append(api, run, 'end', { offset: 1000 })).toMatchObject({ next: 1003 });
    expect(await readPart(api, run.id)).toMatchObject({ bytes: Buffer.from('begin'), next: 5, skipped: 0 });
    expect(await readPart(api, run.id, 'offset=5')).toMatchObject({
      ...{ bytes: Buffer.from('end'), next: 1003, skipped: 995 },
    });
    expect(await readPart(api, run.id, 'offset=1001')).toMatchObject({
      bytes: Buffer.from('nd'),
      skipped: 0,
    });
    // An empty append only says that something was lost.
    expect(await append(api, run, '', { offset: 1100 })).toMatchObject({ status: 200, next: 1100 });
    expect(await readPart(api, run.id, 'offset=1003')).toMatchObject({
      bytes: Buffer.of(),
      next: 1100,
      skipped: 97,
    });
    expect(await append(api, run, 'x', { offset: Number.MAX_SAFE_INTEGER })).toMatchObject({ status: 400 });
    expect(await append(api, run, 'x', { offset: 2 ** 53 - 2 ** 17 })).toMatchObject({ status: 200 });
    expect(await readPart(api, run.id, 'offset=1100')).toMatchObject({
      next: 2 ** 53 - 2 ** 17 + 1,
      bytes: Buffer.from('x'),
    });
  });

  test('is refused above 64 KiB, in another form than text, and without its place', async () => {
    const run = await claimedRun(api);
    expect(await append(api, run, numbered(64 * KIB + 1))).toMatchObject({
      status: 413,
      detail: 'the body is larger than 65536 bytes',
    });
    for (const type of ['application/json', 'application/octet-stream'])
      expect(await append(api, run, '{}', { headers: { 'content-type': type } })).toMatchObject({
        ...{ status: 415, detail: 'the body must be text/plain' },
      });
    expect(await append(api, run, 'x', { headers: { 'content-encoding': 'gzip' } })).toMatchObject({
      status: 415,
    });
    const path = `/api/v1/runs/${run.id}/log`;
    const headers = { 'content-type': 'text/plain' };
    const bare = await api.call('POST', path, 'x', headers);
    expect(bare.body['errors']).toEqual([
      { path: 'attempt', message: 'is required' },
      { path: 'offset', message: 'is required' },
    ]);
    const wrong = await api.call('POST', `${path}?attempt=0&offset=-1&workerId=%00&x=1`, 'x', headers);
    expect(wrong.status).toBe(400);
    expect(wrong.body['errors']).toHaveLength(4);
    expect((await readLog(api, run)).parts).toEqual([]);
  });
});

describe('of one attempt', () => {
  test('the first 256 KiB and the newest 768 KiB are kept, to the byte, and what is left out is counted', async () => {
    const run = await claimedRun(api);
    const size = 3 * 1024 * KIB + 12_345;
    await appendAll(run, size, 50_000);
    const { parts } = await readLog(api, run);
    const [head, ...tail] = parts;
    expect(head).toMatchObject({ skipped: 0, next: 256 * KIB });
    expect(head?.bytes.equals(numbered(256 * KIB))).toBe(true);
    expect(tail.map(({ skipped }) => skipped)).toEqual([size - 1024 * KIB, 0, 0]);
    expect(Buffer.concat(tail.map(({ bytes }) => bytes)).equals(numbered(768 * KIB, size - 768 * KIB))).toBe(true);
    const inTheGap = await readPart(api, run.id, `offset=${256 * KIB + 1}`);
    expect(inTheGap).toMatchObject({ skipped: size - 1024 * KIB - 1 });
    const kept = (await rowsOf(run)).reduce((sum, { size: bytes }) => sum + bytes, 0);
    expect(kept).toBeLessThan(1024 * KIB + 2 * 50_000);
  });

  test('nothing is left out as long as it has no more than 1 MiB', async () => {
    const run = await claimedRun(api);
    await appendAll(run, 1024 * KIB);
    const { bytes, parts } = await readLog(api, run);
    expect(bytes.equals(numbered(1024 * KIB))).toBe(true);
    expect(parts.map(({ skipped }) => skipped)).toEqual([0, 0, 0, 0]);
    await append(api, run, 'x', { offset: 1024 * KIB });
    expect(await readPart(api, run.id, `offset=${256 * KIB}`)).toMatchObject({ skipped: 1 });
  });

  test('very many small appends are few rows, and very many gaps are not rows without end', async () => {
    const run = await claimedRun(api);
    await appendAll(run, 6_000, 50);
    expect((await rowsOf(run)).length).toBe(4);
    const small = await startApi(api.databaseUrl, { runLogKib: 8 });
    onTestFinished(() => small.stop());
    const gappy = await claimedRun(small);
    for (let n = 0; n < 60; n += 1) await append(small, gappy, 'x', { offset: 2 * n });
    expect((await rowsOf(gappy)).length).toBeLessThan(10);
    const { parts } = await readLog(small, gappy);
    expect(parts.at(0)).toMatchObject({ skipped: 0, next: 1 });
    expect(parts.at(-1)).toMatchObject({ skipped: 1, next: 119 });
    expect(parts.reduce((sum, { skipped, bytes }) => sum + skipped + bytes.length, 0)).toBe(119);
  });

  test('the log stands beside that of another', async () => {
    const first = await claimedRun(api);
    await append(api, first, 'first');
    await changeRun(api.sql, first.id, { status: 'pending', claimed_by: null });
    expect(await readPart(api, first.id)).toMatchObject({ bytes: Buffer.from('first'), isComplete: true });
    const second = await claimAgain(api, first.id);
    expect(second.attempt).toBe(2);
    expect(await append(api, first, 'late', { offset: 5 })).toMatchObject({
      status: 409,
      detail: 'attempt 1 is not the current one (2)',
    });
    await append(api, second, 'second');
    expect(await readPart(api, first.id)).toMatchObject({
      bytes: Buffer.from('second'),
      attempt: 2,
      isComplete: false,
    });
    expect(await readPart(api, first.id, 'attempt=1')).toMatchObject({
      bytes: Buffer.from('first'),
      isComplete: true,
    });
    expect(await readPart(api, first.id, 'attempt=3')).toMatchObject({
      bytes: Buffer.of(),
      isComplete: false,
    });
  });
});

describe('an append', () => {
  test('may leave its worker out, and is refused of another one', async () => {
    const run = await claimedRun(api);
    expect(await append(api, run, 'a', { more: '&workerId=w-1' })).toMatchObject({ status: 200 });
    expect(await append(api, run, 'b', { offset: 1, more: '&workerId=w-2' })).toMatchObject({
      ...{ status: 409, detail: 'the run is not claimed by worker w-2' },
    });
    expect((await readLog(api, run)).bytes.toString()).toBe('a');
  });

  test('is taken for a minute after the end, which readers do not wait for, and not later', async () => {
    const run = await claimedRun(api);
    await append(api, run, 'a');
    await complete(api, run);
    expect(await readPart(api, run.id)).toMatchObject({ next: 1, isComplete: true });
    expect(await append(api, run, 'b', { offset: 1 })).toMatchObject({ status: 200 });
    await changeRun(api.sql, run.id, { finished_at: new Date(Date.now() - 61_000) });
    expect(await append(api, run, 'c', { offset: 2 })).toMatchObject({
      status: 409,
      detail: 'the run has ended as succeeded',
    });
    expect((await readLog(api, run)).bytes.toString()).toBe('ab');
  });

  test('says that the worker has begun: what it has printed it cannot give back', async () => {
    const run = await claimedRun(api);
    await append(api, run, 'begun');
    const release = () => api.call('POST', `/api/v1/runs/${run.id}/release`, { attempt: run.attempt, workerId: 'w-1' });
    const refused = await release();
    expect([refused.status, refused.body['detail']]).toEqual([
      409,
      'the worker has begun the run, by its log: it can only be completed',
    ]);
    await changeRun(api.sql, run.id, { status: 'pending', claimed_by: null });
    run.attempt = (await claimAgain(api, run.id)).attempt;
    expect((await release()).body['status']).toBe('pending');
    await claimAgain(api, run.id);
  });

  test('is taken of a callback, and refused before there is an attempt, and of no run', async () => {
    const made = await api.call('POST', '/api/v1/runs', {
      ...{ target: { type: 'http', url: 'http://127.0.0.1:9/' }, completion: 'callback' },
    });
    const run = { id: made.body['id'] as unknown as string, attempt: 1 };
    expect(await append(api, run, 'x')).toMatchObject({
      status: 409,
      detail: 'the run is pending: no attempt has started',
    });
    expect(await readPart(api, run.id)).toMatchObject({ bytes: Buffer.of(), next: 0, isComplete: false });
    await changeRun(api.sql, run.id, {
      status: 'running',
      attempts: 1,
      lease_seconds: 60,
      expires_at: new Date(Date.now() + 60_000),
    });
    expect(await append(api, run, 'x')).toMatchObject({ status: 200 });
    const none = { id: '0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60', attempt: 1 };
    expect(await append(api, none, 'x')).toMatchObject({ status: 404 });
    expect(await readPart(api, none.id)).toMatchObject({ status: 404 });
    expect(await append(api, { ...none, id: 'ffffffff-ffff-7fff-bfff-ffffffffffff' }, 'x')).toMatchObject({
      status: 404,
    });
  });
});

test('a run that printed nothing has an empty log, which is complete once it has ended', async () => {
  const run = await claimedRun(api);
  expect(await readPart(api, run.id)).toMatchObject({
    status: 200,
    bytes: Buffer.of(),
    next: 0,
    isComplete: false,
  });
  await complete(api, run);
  expect(await readPart(api, run.id, 'offset=7')).toMatchObject({
    bytes: Buffer.of(),
    next: 7,
    skipped: 0,
    isComplete: true,
  });
});

test('switched off there are no logs', async () => {
  const off = await startApi(api.databaseUrl, { runLogKib: 0 });
  onTestFinished(() => off.stop());
  const run = await claimedRun(off);
  expect(await append(off, run, 'x')).toMatchObject({
    status: 404,
    detail: expect.stringContaining('switched off') as string,
  });
  expect(await readPart(off, run.id)).toMatchObject({ status: 404 });
  await complete(off, run);
});

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
    onTestFinished(() => other.stop());
    const first = readPart(api, run.id, WAIT);
    await waiters(1);
    await append(other, run, 'more');
    expect(await first).toMatchObject({ next: 4, isComplete: false });
    const second = readPart(api, run.id, `${WAIT}&offset=4`);
    await waiters(1);
    await complete(other, run);
    expect(await second).toMatchObject({ bytes: Buffer.of(), next: 4, isComplete: true });
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
    onTestFinished(() => asked.stop());
    const run = await claimedRun(api);
    const waiting = readPart(asked, run.id, WAIT, token.headers);
    await waiters(1, asked);
    asked.access.replaceTokens([]);
    expect(await waiting).toMatchObject({ status: 401 });
  });
});

describe('with tokens', { tags: [ATTACK] }, () => {
  const clock = settableClock();
  const [admin, viewer, worker] = [
    newToken('admin', 'admin'),
    newToken('viewer', 'viewer'),
    newToken('worker', 'worker'),
  ];
  const [ours, theirs] = [newToken('ours', 'worker', null, ['work']), newToken('theirs', 'worker', null, ['other'])];
  const reader = newToken('reader', 'viewer', null, ['billing.']);
  const api = sharedApi({
    clock,
    apiTokens: [admin, viewer, worker, ours, theirs, reader].map(({ known }) => known),
  });

  test('a worker appends to and reads the logs of runs that it may claim, a viewer reads, and others learn nothing', async () => {
    const run = await claimedRun(api, { key: 'billing.a' }, admin.headers);
    const as = async ({ headers }: typeof admin) => [
      (await append(api, run, 'x', { headers })).status,
      (await readPart(api, run.id, '', headers)).status,
    ];
    expect(await as(worker)).toEqual([200, 200]);
    expect(await as(ours)).toEqual([200, 200]);
    expect(await as(viewer)).toEqual([403, 200]);
    expect(await as(reader)).toEqual([403, 200]);
    expect(await as(theirs)).toEqual([404, 404]);
  });

  test('a worker does not read the log of a run that no worker claims', async () => {
    const asked = {
      target: { type: 'http', url: 'http://127.0.0.1:9/' },
      completion: 'callback',
      key: 'work.http',
    };
    const { body } = await api.call('POST', '/api/v1/runs', asked, admin.headers);
    const id = body['id'] as unknown as string;
    expect((await readPart(api, id, '', worker.headers)).status).toBe(403);
    expect((await readPart(api, id, '', ours.headers)).status).toBe(403);
    expect((await readPart(api, id, '', theirs.headers)).status).toBe(404);
    expect((await readPart(api, id, '', viewer.headers)).status).toBe(200);
  });

  test('a token that appends more than 4 MiB in a second waits, and no other one does', async () => {
    const run = await claimedRun(api, {}, admin.headers);
    const bytes = new Uint8Array(64 * 1024);
    let offset = 0;
    const next = ({ headers } = worker) => append(api, run, bytes, { offset, headers });
    clock.forward(60_000);
    for (; offset < 4 * 1024 * 1024; offset += bytes.length) expect((await next()).status).toBe(200);
    expect(await next()).toMatchObject({
      status: 429,
      retryAfter: '1',
      detail: 'too many bytes of logs in a short time',
    });
    expect((await next(ours)).status).toBe(200);
    clock.forward(1_000);
    expect((await next()).status).toBe(200);
  });
});
