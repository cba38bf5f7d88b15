import type { Contestant } from '../contestant.ts';
import { ask, forkModule, nextMessage } from '../support/child.ts';
import type { BenchDatabase } from '../support/postgres.ts';
import type { BareOptions, FromBare, ToBare } from './process.ts';

export type BareKind = 'posts' | 'sql' | 'pipeline';

const NAMES = { posts: 'bare POSTs', sql: 'bare SQL', pipeline: 'bare pipeline' } as const;

/** One of the bare loops, in a process of its own as the daemon is. */
export async function startBare(
  kind: BareKind,
  options: BareOptions,
  database: BenchDatabase,
): Promise<Contestant> {
  const child = forkModule(new URL(`${kind}.ts`, import.meta.url), [JSON.stringify(options)]);
  await nextMessage<FromBare>(child.process);
  if (child.process.pid === undefined) throw new Error(`${NAMES[kind]} did not start`);
  const posted = new Map<number, Set<string>>();
  return {
    name: NAMES[kind],
    pid: child.process.pid,
    posts: kind !== 'sql',
    leadSeconds: () => 2,
    arm: async (count, dueAt) => {
      await ask<FromBare>(child.process, { type: 'arm', count, dueAt } satisfies ToBare);
    },
    settled: async (_count, dueAt) => {
      const answer = await ask<FromBare>(child.process, { type: 'fire' } satisfies ToBare);
      if (answer.type !== 'fired') throw new Error(`${NAMES[kind]} answered ${answer.type}`);
      posted.set(dueAt, new Set(answer.runIds));
      return answer.at;
    },
    history: async (count, dueAt) => {
      const ids = kind === 'posts' ? posted.get(dueAt) : await succeededRuns(database, dueAt);
      if (ids?.size !== count) throw new Error(`${NAMES[kind]}: ${ids?.size ?? 0} runs instead of ${count}`);
      return ids;
    },
    stop: () => child.stop(),
  };
}

async function succeededRuns(database: BenchDatabase, dueAt: number): Promise<Set<string>> {
  const rows = await database.query(
    `SELECT id FROM runs WHERE scheduled_for = to_timestamp(${dueAt / 1000}) AND status = 'succeeded'`,
  );
  return new Set(rows.map((row) => String(row['id'])));
}
