import { ask, forkModule, nextMessage } from './child.ts';

/** What arrived, in that order: at which host, when it was due and when it came, in wall-clock milliseconds. */
export interface Fires {
  host: number[];
  dueAt: number[];
  at: number[];
}

export type ToHosts = { type: 'silence'; from: number } | { type: 'take' };
export type FromHosts = { type: 'listening'; ports: number[] } | { type: 'fires'; fires: Fires };

/** Targets of several origins, in a process of their own. */
export interface Hosts {
  urls: string[];
  /** This host and all after it take requests from now on and never answer. */
  silence(from: number): void;
  /** What came since this was asked last. */
  take(): Promise<Fires>;
  stop(): Promise<void>;
}

export async function startHosts(count: number, answerAfterMs = 0): Promise<Hosts> {
  const args = [String(count), String(answerAfterMs)];
  const child = forkModule(new URL('hosts-process.ts', import.meta.url), args);
  const started = await nextMessage<FromHosts>(child.process);
  if (started.type !== 'listening') throw new Error(`the hosts said ${started.type} first`);
  return {
    urls: started.ports.map((port) => `http://127.0.0.1:${port}/`),
    silence: (from) => {
      child.process.send({ type: 'silence', from } satisfies ToHosts);
    },
    take: async () => {
      const answer = await ask<FromHosts>(child.process, { type: 'take' } satisfies ToHosts);
      if (answer.type !== 'fires') throw new Error(`the hosts answered ${answer.type}`);
      return answer.fires;
    },
    stop: () => child.stop(),
  };
}

/** How late those were that were due in a period, its end excluded. */
export function latenessOf(
  { host, dueAt, at }: Fires,
  due: { from: number; to: number },
  isCounted: (host: number) => boolean = () => true,
): number[] {
  return dueAt.flatMap((moment, index) =>
    moment >= due.from && moment < due.to && isCounted(host[index] ?? -1) ? [(at[index] ?? NaN) - moment] : [],
  );
}
