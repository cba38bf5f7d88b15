import { bareEntry, firelockEntry, peerEntries, runContest } from '../contest.ts';
import { type Measured, cpuOf, herdSummary, herdTable, runHerd } from '../herd.ts';
import { type Round, medianFigure, namesOf, ratioBar, ratioNote } from '../rounds.ts';
import type { Scenario, Table } from '../scenario.ts';

const SIZES = { whole: 50_000, quick: 1_000 };

export const oneOff: Scenario = {
  name: 'one-off',
  title: 'runs enqueued ahead through POST /runs/batch with one runAt, then drained to a local receiver',
  run: async (bench) => {
    const count = SIZES[bench.quick ? 'quick' : 'whole'];
    const peers = [bench.peers?.graphileWorker, bench.peers?.bullmqDelayed];
    const rounds = await runContest(
      bench,
      [bareEntry('drain'), firelockEntry({ arms: 'oneOffRuns' }), ...peers.flatMap(peerEntries)],
      async ({ contestant, stage }) => {
        await runHerd(contestant, stage, count);
        const drained = await runHerd(contestant, stage, count);
        return { ...drained, enqueuedPerSecond: count / drained.armSeconds };
      },
      (drained) => `${herdSummary(drained)}, enqueued at ${perSecond(drained.enqueuedPerSecond)}`,
    );
    const rate = { what: 'rate', ours: 'firelock', figure: (one: Measured) => one.firesPerSecond };
    const [graphile, delayed] = peers.map((peer) => peer?.name ?? '');
    return {
      scenario: oneOff.name,
      rounds,
      table: withEnqueueing(herdTable(rounds), rounds),
      bars: [...ratioBar(rounds, { ...rate, theirs: graphile ?? '', atLeast: 0.8, aim: 1 })],
      notes: [
        `${count.toLocaleString('en')} runs, 1,000 a call, after as many that do not count. The bare pipeline's stand in its table by one INSERT.`,
        ...ratioNote(rounds, { ...rate, theirs: 'bare pipeline' }),
        ...ratioNote(rounds, { what: 'CPU', ours: 'firelock', theirs: 'bare pipeline', figure: cpuOf }),
        ...ratioNote(rounds, { ...rate, theirs: delayed ?? '' }),
        ...(bench.peers?.missing ?? []),
        ...peers.flatMap((peer) => (peer ? [`${peer.name}: ${peer.setup}`] : [])),
      ],
    };
  },
};

interface Drained extends Measured {
  enqueuedPerSecond: number;
}

function withEnqueueing({ head, rows }: Table, rounds: readonly Round<Drained>[]): Table {
  const rates = namesOf(rounds).map((name) => medianFigure(rounds, name, (one) => one.enqueuedPerSecond));
  return {
    head: [...head, 'enqueued/s'],
    rows: rows.map((row, index) => [...row, perSecond(rates[index] ?? NaN)]),
  };
}

function perSecond(rate: number): string {
  return Math.round(rate).toLocaleString('en');
}
