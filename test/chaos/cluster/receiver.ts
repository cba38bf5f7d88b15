import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Answer, Arrival, Lookup, Notice } from '../checker/history.ts';

export interface Rates {
  answers: Partial<Record<Exclude<Answer, 'ok'>, number>>;
  lookupFails: number;
}

export interface ReceiverOptions {
  seed: number;
  rates: Rates;
  /** For how long a stalled answer is held back: longer than any timeout of the load. */
  stallMs: number;
  logFile: string;
  canaryId: string;
}

export type ReceiverRequest = { type: 'rates'; rates: Rates } | { type: 'status' } | { type: 'end' };
export type ReceiverMessage =
  { type: 'listening'; port: number } | { type: 'status'; arrivals: number; lastCanaryAt: number } | { type: 'ended' };

/** The target of all schedules, in a process of its own, which logs every arrival and what it answered. */
export interface Receiver {
  readonly port: number;
  setRates(rates: Rates): void;
  status(): Promise<{ arrivals: number; lastCanaryAt: number }>;
  /** Ends it; answers all it saw, in the order of arrival. */
  end(): Promise<{ arrivals: Arrival[]; lookups: Lookup[]; notices: Notice[] }>;
}

export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const child = fork(join(import.meta.dirname, 'receiver-process.ts'), [JSON.stringify(options)]);
  const heard = async <Type extends ReceiverMessage['type']>(type: Type) => {
    for (;;) {
      const [message] = (await once(child, 'message')) as [ReceiverMessage];
      if (message.type === type) return message as Extract<ReceiverMessage, { type: Type }>;
    }
  };
  const send = (request: ReceiverRequest) => child.send(request);
  const { port } = await heard('listening');
  return {
    port,
    setRates: (rates) => send({ type: 'rates', rates }),
    status: () => {
      const answer = heard('status');
      send({ type: 'status' });
      return answer;
    },
    end: async () => {
      const ended = once(child, 'exit');
      send({ type: 'end' });
      await ended;
      return readLog(options.logFile);
    },
  };
}

export const FAULTLESS: Rates = { answers: {}, lookupFails: 0 };

async function readLog(path: string): ReturnType<Receiver['end']> {
  const arrivals: Arrival[] = [];
  const lookups: Lookup[] = [];
  const notices: Notice[] = [];
  const text = await readFile(path, 'utf8').catch(() => '');
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const entry = JSON.parse(line) as { arrival?: Arrival; lookup?: Lookup; notice?: Notice };
    if (entry.arrival) arrivals.push(entry.arrival);
    if (entry.lookup) lookups.push(entry.lookup);
    if (entry.notice) notices.push(entry.notice);
  }
  arrivals.sort((a, b) => a.at - b.at);
  lookups.sort((a, b) => a.at - b.at);
  return { arrivals, lookups, notices };
}
