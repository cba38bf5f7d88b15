import { bareEntry, firelockEntry, peerEntries, runContest } from '../contest.ts';
import { runHerd } from '../herd.ts';
import { cpuOf, herdTable, nodeCpuOf, postgresCpuOf, secondsOf, herdSummary } from '../herd-table.ts';
import { medianFigure, ratioBar, ratioNote } from '../rounds.ts';
import { type Scenario, atMost } from '../scenario.ts';

const SIZES = { whole: 10_000, quick: 500 };

export const herd: Scenario = {
  name: 'herd',
  title: 'schedules that are all due in one second, to a local receiver that answers at once',
  run: async (bench) => {
    const count = SIZES[bench.quick ? 'quick' : 'whole'];
    const peers = [bench.peers?.bullmq, bench.peers?.bullmqDelayed];
    const entries = [
      bareEntry('posts'),
      bareEntry('sql'),
      bareEntry('pipeline'),
      firelockEntry(),
      ...peers.flatMap(peerEntries),
    ];
    const rounds = await runContest(
      bench,
      entries,
      async ({ contestant, stage }) => {
        // Not counted: afterwards all code is compiled and all connections are open.
        await runHerd(contestant, stage, count);
        return runHerd(contestant, stage, count);
      },
      herdSummary,
    );
    const time = { what: 'time', ours: 'firelock', figure: secondsOf };
    const pair = { ours: 'firelock', theirs: 'bare pipeline' };
    const memory = medianFigure(rounds, 'firelock', (one) => one.residentMegabytes);
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
        ...ratioNote(rounds, { what: 'CPU', ...pair, figure: cpuOf }),
        ...ratioNote(rounds, { ...time, theirs: delayed ?? '' }),
        ...(bench.peers?.missing ?? []),
        ...peers.flatMap((peer) => (peer ? [`${peer.name}: ${peer.setup}`] : [])),
      ],
    };
  },
};
