import { setTimeout as sleep } from 'node:timers/promises';
import { bareEntry, firelockEntry, peerEntries, runContest } from '../contest.ts';
import { type Measured, cpuOf, herdSummary, herdTable, nodeCpuOf, postgresCpuOf, runHerd, secondsOf } from '../herd.ts';
import { medianFigure, ratioBar, ratioNote } from '../rounds.ts';
import { type Scenario, atMost } from '../scenario.ts';
import { residentMegabytes } from '../support/measures/vitals.ts';

const SIZES = { whole: 10_000, quick: 500 };
/** An idle process gives back memory after some ten seconds. */
const REST_MS = 15_000;

interface HerdAndRest extends Measured {
  /** Of the daemon, when it has been idle for a while after the herd; null for the others, and where it cannot be seen. */
  restingMegabytes: number | null;
}

export const herd: Scenario = {
  name: 'herd',
  title: 'schedules that are all due in one second, to a local receiver that answers at once',
  run: async (bench) => {
    const count = SIZES[bench.quick ? 'quick' : 'whole'];
    const peers = [bench.peers?.bullmq, bench.peers?.bullmqDelayed];
    const entries = [bareEntry('pipeline'), firelockEntry(), ...peers.flatMap(peerEntries)];
    const rounds = await runContest(
      bench,
      entries,
      async ({ contestant, stage }): Promise<HerdAndRest> => {
        // Not counted: afterwards all code is compiled and all connections are open.
        await runHerd(contestant, stage, count);
        const measured = await runHerd(contestant, stage, count);
        if (contestant.name !== 'firelock') return { ...measured, restingMegabytes: null };
        await sleep(REST_MS);
        return { ...measured, restingMegabytes: residentMegabytes(contestant.pid) };
      },
      herdSummary,
    );
    const time = { what: 'time', ours: 'firelock', figure: secondsOf };
    const pair = { ours: 'firelock', theirs: 'bare pipeline' };
    const memory = medianFigure(rounds, 'firelock', (one) => one.residentMegabytes);
    const resting = medianFigure(rounds, 'firelock', (one) => one.restingMegabytes);
    const [scheduler, delayed] = peers.map((peer) => peer?.name ?? '');
    return {
      scenario: herd.name,
      rounds,
      table: herdTable(rounds),
      bars: [
        ...ratioBar(rounds, { ...time, theirs: 'bare pipeline', atMost: 2, aim: 1.5 }),
        ...ratioBar(rounds, { what: 'CPU of Node', ...pair, figure: nodeCpuOf, atMost: 2, aim: 1.5 }),
        ...ratioBar(rounds, {
          what: 'CPU of PostgreSQL',
          ...pair,
          figure: postgresCpuOf,
          atMost: 2,
          aim: 1.5,
        }),
        ...ratioBar(rounds, { ...time, theirs: scheduler ?? '', atMost: 0.4, aim: 0.25 }),
        ...(memory === null ? [] : [atMost('memory of the daemon afterwards', memory, 'MB', 250, 180)]),
      ],
      notes: [
        `${count.toLocaleString('en')} schedules, after a herd of as many that does not count.`,
        ...(resting === null ? [] : [`memory of the daemon ${REST_MS / 1000} s later: ${resting.toFixed(0)} MB`]),
        ...ratioNote(rounds, { what: 'CPU', ...pair, figure: cpuOf }),
        ...ratioNote(rounds, { ...time, theirs: delayed ?? '' }),
        ...(bench.peers?.missing ?? []),
        ...peers.flatMap((peer) => (peer ? [`${peer.name}: ${peer.setup}`] : [])),
      ],
    };
  },
};

const INSTANCES = 3;
const TOGETHER = { whole: { count: 10_000, warmUp: 1_000 }, quick: { count: 500, warmUp: 100 } };

export const herdInstances: Scenario = {
  name: 'herd-instances',
  title: `the herd with one instance and with ${INSTANCES} that share a database and a machine`,
  run: async (bench) => {
    const { count, warmUp } = TOGETHER[bench.quick ? 'quick' : 'whole'];
    const rounds = await runContest(
      bench,
      [firelockEntry(), firelockEntry({ instances: INSTANCES })],
      async ({ contestant, stage }) => {
        // As many for each process as one by itself has.
        const processes = 1 + (contestant.others?.length ?? 0);
        await runHerd(contestant, stage, warmUp * processes);
        return runHerd(contestant, stage, count);
      },
      herdSummary,
    );
    const pair = { ours: `firelock, ${INSTANCES} instances`, theirs: 'firelock' };
    return {
      scenario: herdInstances.name,
      rounds,
      table: herdTable(rounds),
      bars: ratioBar(rounds, { what: 'time', ...pair, figure: secondsOf, atMost: 1.5 }),
      notes: [
        `${count.toLocaleString('en')} schedules, after a herd of ${warmUp.toLocaleString('en')} per instance that does not count. Exactly once: a round in which it was not would have failed.`,
        ...ratioNote(rounds, { what: 'CPU', ...pair, figure: cpuOf }),
      ],
    };
  },
};
