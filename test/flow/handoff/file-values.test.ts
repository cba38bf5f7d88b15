import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { sealTarget } from '../../../src/core/schedules/target-secrets.ts';
import { findRun } from '../../../src/store/runs/search/find-runs.ts';
import { eachTest, instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import { SECRETS } from '../../support/secrets.ts';
import { targetAt } from '../../support/targets.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
let secretsDir: string;

beforeEach(() => {
  secretsDir = mkdtempSync(join(tmpdir(), 'firelock-secrets-'));
  onTestFinished(() => rmSync(secretsDir, { recursive: true }));
});

const RETRY = { maxAttempts: 2, minBackoffSeconds: 0.05, maxBackoffSeconds: 0.05 };

/** A schedule whose body has a value of a file; answers what becomes of a run of it. */
async function sending() {
  const instance = await instanceOfTest(store, { secretsDir });
  await instance.start();
  const body = {
    ...{ template: '{"key": {{secret/key}}, "own": {{secret/own}}}', contentType: 'application/json' },
    secrets: { key: { file: 'chat-key', seal: null }, own: 'mine' },
  };
  const given = { ...targetAt(receiver.url), body };
  const { uid } = await instance.put('s', { url: '', retry: RETRY, target: given });
  const { target } = sealTarget(given, { ring: SECRETS, uid, before: null });
  await instance.put('s', { url: '', retry: RETRY, target });
  return async () => {
    const { id } = await instance.fire('s');
    return until(async () => {
      const found = await store.database.run((db) => findRun(db, id, null));
      return found?.finishedAt ? found : null;
    });
  };
}

it('a value of a body is what its file says at each attempt', async () => {
  const ended = await sending();
  writeFileSync(join(secretsDir, 'chat-key'), 'the "first"\n');
  expect(await ended()).toMatchObject({ status: 'succeeded' });
  writeFileSync(join(secretsDir, 'chat-key'), 'the second, which is longer\n');
  await ended();
  await ended();
  expect(receiver.arrivals.map(({ text }) => text)).toEqual([
    '{"key": "the \\"first\\"", "own": "mine"}',
    '{"key": "the second, which is longer", "own": "mine"}',
    '{"key": "the second, which is longer", "own": "mine"}',
  ]);
});

it('without the file nothing is sent, each attempt is transient, and the run says which file is missing', async () => {
  expect(await (await sending())()).toMatchObject({
    status: 'failed',
    error: { kind: 'network', message: expect.stringMatching(/^nothing was sent: .*"chat-key"/) as string },
    attemptLog: [{ outcome: 'transient' }, { outcome: 'transient' }],
  });
  expect(receiver.arrivals).toEqual([]);
});
