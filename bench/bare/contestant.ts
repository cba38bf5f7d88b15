import { type Recurring, secondsIn } from '../contestant.ts';
import { ask, forkModule, nextMessage } from '../support/processes/child.ts';
import type { BenchDatabase } from '../support/processes/postgres.ts';
import type { Armed, BareOptions, FromBare, ToBare } from './process.ts';

export type BareKind = 'pipeline' | 'drain';

const NAME = 'bare pipeline';

/** The bare loop, of schedules or of runs that wait, in a process of its own as the daemon is. Only the first can fire every second. */
export async function startBare(
  kind: BareKind,
  options: BareOptions,
  database: BenchDatabase,
  nodeOptions: readonly string[] = [],
): Promise<Recurring> {
  const child = forkModule(new URL(`${kind}.ts`, import.meta.url), [JSON.stringify(options)], nodeOptions);
  await nextMessage<FromBare>(child.process);
  if (child.process.pid === undefined) throw new Error(`${NAME} did not start`);

  async function arm(armed: Armed): Promise<void> {
    await ask<FromBare>(child.process, { type: 'arm', ...armed } satisfies ToBare);
  }

  async function fire() {
    const answer = await ask<FromBare>(child.process, { type: 'fire' } satisfies ToBare);
    if (answer.type !== 'fired') throw new Error(`${NAME} answered ${answer.type}`);
    return answer;
  }

  async function succeeded(from: number, until: number, count: number): Promise<Set<string>> {
    const ids = await succeededRuns(database, from, until);
    if (ids.size !== count) throw new Error(`${NAME}: ${ids.size} runs instead of ${count}`);
    return ids;
  }

  return {
    name: NAME,
    pid: child.process.pid,
    vacuumed: true,
    leadSeconds: () => 2,
    arm: (count, dueAt) => arm({ count, dueAt, until: null }),
    settled: async () => (await fire()).at,
    history: (count, dueAt) => succeeded(dueAt, dueAt + 1000, count),
    armEverySecond: (count, { from, until }) => arm({ count, dueAt: from, until }),
    settledEverySecond: async () => {
      await fire();
    },
    historyEverySecond: (count, seconds) => succeeded(seconds.from, seconds.until, count * secondsIn(seconds)),
    stop: () => child.stop(),
  };
}

async function succeededRuns(database: BenchDatabase, from: number, until: number): Promise<Set<string>> {
  const rows = await database.query(`SELECT id FROM runs WHERE finished_at IS NOT NULL
    AND scheduled_for >= to_timestamp(${from / 1000}) AND scheduled_for < to_timestamp(${until / 1000})`);
  return new Set(rows.map((row) => String(row['id'])));
}
