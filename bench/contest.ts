import { resolve } from 'node:path';
import { type BareKind, startBare } from './bare/contestant.ts';
import type { Contestant, Recurring } from './contestant.ts';
import { type FirelockOptions, startFirelock } from './firelock.ts';
import type { Stage } from './herd.ts';
import type { Peer } from './peers/peers.ts';
import type { Round } from './rounds.ts';
import type { Bench } from './scenario.ts';

/** One that takes part in every round of a scenario, as a process with nothing in its database. */
interface Entry<C extends Contestant = Contestant> {
  start(bench: Bench): Promise<Started<C>>;
}

interface Started<C extends Contestant = Contestant> {
  contestant: C;
  stage: Stage;
  stop(): Promise<void>;
}

export function bareEntry(kind: BareKind): Entry<Recurring> {
  return {
    start: (bench) =>
      withDatabase(bench, (stage) =>
        startBare(kind, { databaseUrl: stage.database.url, targetUrl: bench.receiver.url }, stage.database),
      ),
  };
}

export function firelockEntry(options: Pick<FirelockOptions, 'arms' | 'instances'> = {}): Entry<Recurring> {
  return {
    start: (bench) =>
      withDatabase(bench, ({ database }) => {
        const { main, receiver, profile } = bench;
        const nodeOptions = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`];
        return startFirelock({ ...options, main, database, targetUrl: receiver.url, nodeOptions });
      }),
  };
}

/** None where the peer cannot run here. */
export function peerEntries(peer: Peer | null | undefined): Entry[] {
  return peer ? [{ start: ({ receiver }) => peer.start(receiver) }] : [];
}

/** Forwards and backwards in turn, so that none always comes first; tells each result in a line. */
export async function runContest<T, C extends Contestant>(
  bench: Bench,
  entries: readonly Entry<C>[],
  measure: (started: Started<C>) => Promise<T>,
  describe: (measured: T) => string,
): Promise<Round<T>[]> {
  const rounds: Round<T>[] = [];
  while (rounds.length < bench.rounds) {
    const round: Round<T> = {};
    rounds.push(round);
    for (const entry of rounds.length % 2 === 1 ? entries : entries.toReversed()) {
      const started = await entry.start(bench);
      try {
        const { name } = started.contestant;
        round[name] = await measure(started);
        bench.log(`round ${rounds.length}: ${name} ${describe(round[name])}`);
      } finally {
        await started.stop();
      }
    }
  }
  return rounds;
}

async function withDatabase(
  { server, receiver }: Bench,
  start: (stage: Stage) => Promise<Recurring>,
): Promise<Started<Recurring>> {
  const database = await server.createDatabase();
  const stage = { server, database, receiver };
  try {
    const contestant = await start(stage);
    return {
      contestant,
      stage,
      stop: async () => {
        try {
          await contestant.stop();
        } finally {
          await database.drop();
        }
      },
    };
  } catch (error) {
    await database.drop();
    throw error;
  }
}
