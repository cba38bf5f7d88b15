import { ask, forkModule, nextMessage } from './child.ts';

/** In the order of arrival; times are wall-clock milliseconds. */
export interface Arrivals {
  runIds: string[];
  at: number[];
}

export type ToReceiver = { type: 'expect'; count: number } | { type: 'report' };
export type FromReceiver =
  { type: 'listening'; port: number } | { type: 'complete' } | { type: 'arrivals'; arrivals: Arrivals };

export interface Receiver {
  url: string;
  /** Forgets what came before; the promise resolves when that many requests have arrived since. */
  expect(count: number): Promise<void>;
  /** Everything since the last `expect`. */
  arrivals(): Promise<Arrivals>;
  stop(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const child = forkModule(new URL('receiver-process.ts', import.meta.url), []);
  const started = await nextMessage<FromReceiver>(child.process);
  if (started.type !== 'listening') throw new Error(`the receiver said ${started.type} first`);
  return {
    url: `http://127.0.0.1:${started.port}/herd`,
    expect: async (count) => {
      await ask<FromReceiver>(child.process, { type: 'expect', count } satisfies ToReceiver);
    },
    arrivals: async () => {
      const answer = await ask<FromReceiver>(child.process, { type: 'report' } satisfies ToReceiver);
      if (answer.type !== 'arrivals') throw new Error(`the receiver answered ${answer.type}`);
      return answer.arrivals;
    },
    stop: () => child.stop(),
  };
}
