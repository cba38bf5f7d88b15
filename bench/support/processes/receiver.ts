import { forkModule, messageThat, nextMessage } from './child.ts';

/** In the order of arrival; times are wall-clock milliseconds. */
export interface Arrivals {
  runIds: string[];
  at: number[];
  /** What the request says of itself, in the headers that every handoff has: `/schedules/ID` and an ISO 8601 instant. */
  sources: string[];
  scheduledFor: string[];
}

export type ToReceiver = { type: 'expect'; count: number; herd: number } | { type: 'report' };
export type FromReceiver =
  { type: 'listening'; port: number } | { type: 'complete'; herd: number } | { type: 'arrivals'; arrivals: Arrivals };

type Complete = Extract<FromReceiver, { type: 'complete' }>;
type ArrivalsMessage = Extract<FromReceiver, { type: 'arrivals' }>;

export interface Receiver {
  url: string;
  pid: number;
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
  let herds = 0;
  return {
    url: `http://127.0.0.1:${started.port}/herd`,
    pid: child.process.pid ?? 0,
    expect: async (count) => {
      herds += 1;
      const herd = herds;
      child.process.send({ type: 'expect', count, herd } satisfies ToReceiver);
      await messageThat(
        child.process,
        (message: FromReceiver): message is Complete => message.type === 'complete' && message.herd === herd,
      );
    },
    arrivals: async () => {
      child.process.send({ type: 'report' } satisfies ToReceiver);
      const message = await messageThat(
        child.process,
        (message: FromReceiver): message is ArrivalsMessage => message.type === 'arrivals',
      );
      return message.arrivals;
    },
    stop: () => child.stop(),
  };
}
