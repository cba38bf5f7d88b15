/**
 * How long the lists of a small team take, which shares an installation with a large one: as its token asks for them, and as one
 * without a scope does.
 *
 *     npm run bench:scopes -- [--schedules 1000000] [--small 100] [--runs 1000000] [--days 30] [--calls 20] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createToken, tokenHash } from '../src/core/access/token.ts';
import { startReceiver } from './support/processes/receiver.ts';
import { buildDaemon } from './support/processes/build.ts';
import { startDaemon } from './support/processes/daemon.ts';
import { type BenchDatabase, openServer } from './support/processes/postgres.ts';
import { describeMachine } from './support/measures/machine.ts';
import { SMALL_TEAM, seedTeams } from './support/scopes/seed-teams.ts';
import { type AskedList, OF_ALL, OF_SMALL, askLists } from './support/scopes/scoped-lists.ts';

const { values: options } = parseArgs({
  options: {
    schedules: { type: 'string', default: '1000000' },
    small: { type: 'string', default: '100' },
    runs: { type: 'string', default: '1000000' },
    days: { type: 'string', default: '30' },
    calls: { type: 'string', default: '20' },
    json: { type: 'string' },
  },
});
const numbers = Object.fromEntries(
  Object.entries(options).map(([name, value]) => [name, Number(value)]),
) as Record<Exclude<keyof typeof options, 'json'>, number>;
const KEEPING = { FIRELOCK_RETENTION_DAYS: '3650' };
/** Of each list of the small team. */
const REQUIRED_MS = 50;
/** A daemon looks at all schedules soon after its start. */
const SETTLING_MS = 30_000;

await run();

async function run(): Promise<void> {
  const build = buildDaemon();
  const server = await openServer();
  try {
    const machine = { ...describeMachine(), postgres: server.version, durability: server.durability };
    console.log(JSON.stringify(machine));
    const database = await server.createDatabase();
    try {
      await seed(build.main, database);
      const { scoped, unscoped } = await ask(build.main, database);
      const slow = scoped.filter(({ medianMs }) => medianMs > REQUIRED_MS);
      print(`token of the scope ${SMALL_TEAM}`, scoped);
      print('token without a scope', unscoped);
      console.log(
        slow.length === 0
          ? `none above ${REQUIRED_MS} ms in a scope`
          : `NOT MET by ${slow.map(({ path }) => path).join(', ')}`,
      );
      const report = { machine, ...numbers, requiredMs: REQUIRED_MS, scoped, unscoped };
      if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
      if (slow.length > 0) process.exitCode = 1;
    } finally {
      await database.drop();
    }
  } finally {
    await server.stop();
    build.remove();
  }
}

/** By a daemon that asks nobody for a token. */
async function seed(main: string, database: BenchDatabase): Promise<void> {
  const receiver = await startReceiver();
  const daemon = await startDaemon({ main, databaseUrl: database.url, nodeOptions: [], variables: KEEPING });
  const startedAt = performance.now();
  const log = (what: string) => {
    console.log(`${what}, after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  };
  try {
    await seedTeams(database, daemon.url, { ...numbers, url: receiver.url, log });
  } finally {
    await daemon.stop();
    await receiver.stop();
  }
}

async function ask(
  main: string,
  database: BenchDatabase,
): Promise<Record<'scoped' | 'unscoped', AskedList[]>> {
  const [small, all] = [createToken(randomInt), createToken(randomInt)];
  const line = (name: string, token: string) => `${name}:${tokenHash(token).toString('hex')}`;
  const tokens = [line(`small:operator[${SMALL_TEAM}]`, small), line('all:operator', all)].join(',');
  const variables = { ...KEEPING, FIRELOCK_API_TOKENS: tokens };
  const daemon = await startDaemon({ main, databaseUrl: database.url, nodeOptions: [], variables });
  const { calls } = numbers;
  try {
    await sleep(SETTLING_MS);
    return {
      scoped: await askLists(daemon.url, { token: small, paths: OF_SMALL, calls }),
      unscoped: await askLists(daemon.url, { token: all, paths: OF_ALL, calls }),
    };
  } finally {
    await daemon.stop();
  }
}

function print(who: string, asked: readonly AskedList[]): void {
  console.log(`\n${who}`);
  for (const { path, items, medianMs, worstMs, failed } of asked.toSorted(
    (a, b) => b.medianMs - a.medianMs,
  )) {
    const count = items === null ? '' : `, ${items} items`;
    const also = failed === 0 ? '' : `, ${failed} answered 5xx`;
    console.log(`  ${path}: ${medianMs.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms${count}${also}`);
  }
}
