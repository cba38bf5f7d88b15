// @module-tag long
import { describe, expect, onTestFinished, test } from 'vitest';
import { openFileStore } from '../../clients/typescript/src/receiver/file-store.ts';
import {
  Later,
  Refused,
  createReceiver,
  verifySignature,
} from '../../clients/typescript/src/receiver/index.ts';
import { type RunJob, work } from '../../clients/typescript/src/worker/index.ts';
import { temporaryFile } from './temporary-file.ts';
import { type Action, type Sent, TOKEN, playScript, vectors } from './script.ts';

const NOW = () => vectors.now * 1000;

/** Does what a vector says that the work does; answers what the work returns. */
async function act(actions: readonly Action[], { asked, stop, job }: Partial<Acting> = {}): Promise<unknown> {
  for (const action of actions) {
    if (action.log !== undefined) job?.log(action.log.repeat(action.times ?? 1));
    if (action.progress !== undefined) job?.progress(action.progress);
    if (action.until !== undefined) await asked?.(action.until);
    if (action.wait !== undefined && job?.signal.aborted === false)
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
    if (action.stop === true) stop?.();
    if (action.later !== undefined) throw new Later(action.later, action.message);
    if (action.refuse !== undefined) throw new Refused(action.refuse);
    if (action.fail !== undefined) throw new Error(action.fail);
    if (action.return !== undefined) return action.return;
  }
  return undefined;
}

interface Acting {
  job: RunJob;
  asked: (count: number) => Promise<void>;
  stop: () => void;
}

describe('the signature is', () => {
  test.each(vectors.signatures)('$name: $isRight', async ({ isRight, secrets, headers, body }) => {
    const lower = new Headers(headers);
    const request = { header: (name: string) => lower.get(name), body };
    const verified = verifySignature(secrets, request, { now: NOW });
    expect(
      await verified.then(
        () => true,
        () => false,
      ),
    ).toBe(isRight);
  });

  test.each(vectors.badSecrets)('%j is no secret', (secret) => {
    expect(() => createReceiver({ secrets: [secret], work: () => null })).toThrow('a secret is');
  });
});

describe('a receiver', () => {
  test.each(vectors.receivers)('$name', async ({ steps }) => {
    const path = await temporaryFile();
    let worked = 0;
    let actions: readonly Action[] = [];
    const open = async () => {
      const store = await openFileStore(path);
      onTestFinished(() => store.close());
      const receiver = createReceiver({
        ...{ secrets: vectors.secrets, store, now: NOW, onError: () => undefined },
        work: () => {
          worked += 1;
          return act(actions);
        },
      });
      return receiver.fetch;
    };
    let receive = await open();
    for (const { restart, request = '', do: next = [], ...expected } of steps) {
      if (restart === true) {
        receive = await open();
        continue;
      }
      actions = next;
      const { method, headers, body } = sentAs(request);
      const sent = new Request('http://127.0.0.1/', { method, headers, ...(method === 'POST' && { body }) });
      const answer = await receive(sent);
      expect([request, answer.status, worked]).toEqual([request, expected.status, expected.worked]);
      if (expected.body !== undefined) expect(await answer.json()).toEqual(expected.body);
      expect(answer.headers.get('retry-after')).toBe(expected.retryAfter ?? null);
    }
  });
});

function sentAs(name: string): Sent {
  const sent = vectors.requests[name];
  if (sent === undefined) throw new Error(`no request is called ${name}`);
  return sent;
}

describe('a worker', () => {
  test.each(vectors.workers)('$name', async (script) => {
    await playScript(script, ({ url, asked, stopsBy }) => {
      const handler = (run: { payload: { value: () => unknown } }, job: RunJob) =>
        act((run.payload.value() as { do: Action[] }).do, { job, asked, stop: () => void worker.stop() });
      const worker = work('q', handler, {
        ...{
          url,
          token: TOKEN,
          workerId: 'w',
          leaseSeconds: 3600,
          logSeconds: 3600,
          onError: () => undefined,
        },
        ...script.options,
      });
      stopsBy(() => void worker.stop());
      return worker.ended;
    });
  });
});
