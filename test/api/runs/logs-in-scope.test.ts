// @module-tag attack
import { expect, test } from 'vitest';
import { append, claimedRun, readPart } from '../../support/run-logs.ts';
import { newToken, settableClock } from '../access/support.ts';
import { sharedApi } from '../api.ts';

const clock = settableClock();
const [admin, viewer, worker] = [
  newToken('admin', 'admin'),
  newToken('viewer', 'viewer'),
  newToken('worker', 'worker'),
];
const [ours, theirs] = [
  newToken('ours', 'worker', null, ['work']),
  newToken('theirs', 'worker', null, ['other']),
];
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
