import { bareEntry, firelockEntry, peerEntries, runContest } from '../contest.ts';
import { runHerd } from '../herd.ts';
import { cpuOf, herdTable, secondsOf, tellHerd } from '../herd-table.ts';
import { ratioBar, ratioNote } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

/** A herd that is not counted goes first: everybody's code is compiled and their connections are open. */
const SIZES = { whole: { count: 10_000, warmUp: 1_000 }, quick: { count: 500, warmUp: 100 } };

export const herd: Scenario = {
  name: 'herd',
  title: 'schedules that are all due in one second, to a local receiver that answers at once',
  run: async (bench) => {
    const { count, warmUp } = SIZES[bench.quick ? 'quick' : 'whole'];
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
        await runHerd(contestant, stage, warmUp);
        return runHerd(contestant, stage, count);
      },
      tellHerd,
    );
    const time = { what: 'time', ours: 'firelock', figure: secondsOf };
    const [scheduler, delayed] = peers.map((peer) => peer?.name ?? '');
    return {
      scenario: herd.name,
      rounds,
      table: herdTable(rounds),
      bars: [
        ...ratioBar(rounds, { ...time, theirs: 'bare pipeline', atMost: 2 }),
        ...ratioBar(rounds, { ...time, theirs: scheduler ?? '', atMost: 0.5 }),
      ],
      notes: [
        `${count.toLocaleString('en')} schedules, after a herd of ${warmUp.toLocaleString('en')} that does not count.`,
        ...ratioNote(rounds, { what: 'CPU', ours: 'firelock', theirs: 'bare pipeline', figure: cpuOf }),
        ...ratioNote(rounds, { ...time, theirs: delayed ?? '' }),
        ...(bench.peers?.missing ?? []),
        ...peers.flatMap((peer) => (peer ? [`${peer.name}: ${peer.setup}`] : [])),
      ],
    };
  },
};
