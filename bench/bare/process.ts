import { setTimeout as sleep } from 'node:timers/promises';

export interface BareOptions {
  databaseUrl: string;
  targetUrl: string;
}

/** How many fires are due at a moment, and whether again in each second before `until`. */
export interface Armed {
  count: number;
  dueAt: number;
  until: number | null;
}

export type ToBare = ({ type: 'arm' } & Armed) | { type: 'fire' };
export type FromBare = { type: 'ready' } | { type: 'armed' } | { type: 'fired'; at: number };

/** A loop without features: the simplest thing that does the same work. */
interface Bare {
  arm(armed: Armed): Promise<void>;
  /** Called at the due moment; resolves when all is done. */
  fire(): Promise<unknown>;
}

/** Runs a bare loop for the process that forked this one. */
export async function serve(create: (options: BareOptions) => Bare | Promise<Bare>): Promise<void> {
  const bare = await create(JSON.parse(process.argv[2] ?? '{}') as BareOptions);
  let dueAt = 0;

  async function answer(message: ToBare): Promise<FromBare> {
    if (message.type === 'arm') {
      dueAt = message.dueAt;
      await bare.arm(message);
      return { type: 'armed' };
    }
    await sleepUntil(dueAt);
    await bare.fire();
    return { type: 'fired', at: Date.now() };
  }

  process.on('message', (message: ToBare) => {
    void answer(message).then((result) => process.send?.(result));
  });
  process.on('disconnect', () => process.exit());
  process.send?.({ type: 'ready' } satisfies FromBare);
}

export async function sleepUntil(at: number): Promise<void> {
  while (Date.now() < at) await sleep(at - Date.now());
}
