import { firelockEntry, runContest } from '../contest.ts';
import { runHerd } from '../herd.ts';
import { cpuOf, herdTable, secondsOf, herdSummary } from '../herd-table.ts';
import { ratioBar, ratioNote } from '../rounds.ts';
import type { Scenario } from '../scenario.ts';

const INSTANCES = 3;
const SIZES = { whole: { count: 10_000, warmUp: 1_000 }, quick: { count: 500, warmUp: 100 } };

export const herdInstances: Scenario = {
  name: 'herd-instances',
  title: `the herd with one instance and with ${INSTANCES} that share a database and a machine`,
  run: async (bench) => {
    const { count, warmUp } = SIZES[bench.quick ? 'quick' : 'whole'];
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
