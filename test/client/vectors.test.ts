// @module-tag long
import { describe, expect, onTestFinished, test } from 'vitest';
import { openFileStore } from '../../clients/typescript/src/receiver/file-store.ts';
import { createClient } from '../../clients/typescript/src/index.ts';
import {
  Later,
  type ReceiverOptions,
  Refused,
  createReceiver,
  verifySignature,
} from '../../clients/typescript/src/receiver/index.ts';
import { type RunJob, work } from '../../clients/typescript/src/worker/index.ts';
import { temporaryFile } from './temporary-file.ts';
import { type Action, type CallbackStep, type Sent, TOKEN, playScript, vectors } from './script.ts';

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
  test.each(vectors.receivers)('$name', ({ steps }) => receive(steps));

  test.each(vectors.callbacks)('that answers first: $name', async ({ name, heartbeatSeconds = 3600, steps }) => {
    const made = steps.filter((step) => 'path' in step);
    await playScript({ name, steps: made }, async ({ url, asked }) => {
      const callback = { firelock: createClient({ url, token: TOKEN }), heartbeatSeconds };
      await receive(steps, { callback, asked });
    });
  });
});

type Callbacks = Required<Pick<ReceiverOptions, 'callback'>> & Pick<Acting, 'asked'>;

async function receive(steps: readonly CallbackStep[], callbacks?: Callbacks): Promise<void> {
  const path = await temporaryFile();
  let [worked, made] = [0, 0];
  let actions: readonly Action[] = [];
  const open = async () => {
    const store = await openFileStore(path);
    onTestFinished(() => store.close());
    const receiver = createReceiver({
      ...{ secrets: vectors.secrets, store, now: NOW, onError: () => undefined },
      ...(callbacks && { callback: callbacks.callback }),
      work: (_, job) => {
        worked += 1;
        return act(actions, {
          job: { ...job, log: () => undefined },
          ...(callbacks && { asked: callbacks.asked }),
        });
      },
    });
    return receiver.fetch;
  };
  let taken = await open();
  for (const step of steps) {
    if ('path' in step) await callbacks?.asked((made += 1));
    else if (step.restart === true) taken = await open();
    else {
      actions = step.do ?? [];
      await handOver(step, taken);
    }
    if (step.worked !== undefined) expect([step, worked]).toEqual([step, step.worked]);
  }
}

async function handOver(
  { request = '', ...expected }: Exclude<CallbackStep, { path: string }>,
  taken: (request: Request) => Promise<Response>,
): Promise<void> {
  const { method, headers, body } = sentAs(request);
  const answer = await taken(new Request('http://127.0.0.1/', { method, headers, ...(method === 'POST' && { body }) }));
  expect([request, answer.status]).toEqual([request, expected.status]);
  if (expected.body !== undefined) expect(await answer.json()).toEqual(expected.body);
  expect(answer.headers.get('retry-after')).toBe(expected.retryAfter ?? null);
}

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
