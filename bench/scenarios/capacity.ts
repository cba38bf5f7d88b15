import { type Step, climb } from '../climb.ts';
import { bareEntry, firelockEntry, runContest } from '../contest.ts';
import { type EverySecond, fireEverySecond, stepOf } from '../every-second.ts';
import { type Round, medianFigure, namesOf, ratioNote } from '../rounds.ts';
import type { Scenario, Table } from '../scenario.ts';

const SIZES = {
  whole: { start: 1_000, top: Infinity, warmUp: 3, seconds: 10 },
  /** Enough to see that it works; the machine's limit takes minutes. */
  quick: { start: 100, top: 300, warmUp: 1, seconds: 2 },
};
const LIMIT_MS = 1_000;
/** What a step leaves behind must be gone before the next one. */
const WAIT_LIMIT_MS = 30_000;
/** A later round begins so far below what the one before it found. */
const BELOW = 1.5;

interface Climbed {
  firesPerSecond: number;
  steps: ({ count: number; outcome: Step } & EverySecond)[];
}

export const capacity: Scenario = {
  name: 'capacity',
  title: 'how many schedules can fire every second before 1 % of the fires are more than a second late',
  run: async (bench) => {
    const size = SIZES[bench.quick ? 'quick' : 'whole'];
    const starts = new Map<string, number>();
    const rounds = await runContest(
      bench,
      [bareEntry('pipeline'), firelockEntry()],
      async ({ contestant, stage }): Promise<Climbed> => {
        const { name } = contestant;
        const steps: Climbed['steps'] = [];
        const firesPerSecond = await climb(
          { ...size, start: starts.get(name) ?? size.start },
          async (count) => {
            const plan = { ...size, count, waitLimitMs: WAIT_LIMIT_MS, checksHistory: false };
            const measured = await fireEverySecond(contestant, stage, plan);
            const outcome = stepOf(measured, LIMIT_MS);
            steps.push({ count, outcome, ...measured });
            bench.log(
              `  ${name}: ${count.toLocaleString('en')}/s, p99 ${Math.round(measured.latenessMs.p99)} ms late: ${outcome}`,
            );
            return outcome;
          },
        );
        starts.set(name, Math.max(size.start, Math.round(firesPerSecond / BELOW)));
        return { firesPerSecond, steps };
      },
      (climbed) => `${rateOf(climbed).toLocaleString('en')} fires/s`,
    );
    return {
      scenario: capacity.name,
      rounds,
      table: tableOf(rounds),
      bars: [],
      notes: [
        ...ratioNote(rounds, { what: 'rate', ours: 'firelock', theirs: 'bare pipeline', figure: rateOf }),
        `Steps of ${size.seconds} s, after ${size.warmUp} s that do not count.`,
        ...(bench.quick ? [`--quick: none was asked for more than ${size.top} fires/s.`] : []),
      ],
    };
  },
};

function rateOf({ firesPerSecond }: Climbed): number {
  return firesPerSecond;
}

function tableOf(rounds: readonly Round<Climbed>[]): Table {
  return {
    head: ['', 'fires/s'],
    rows: namesOf(rounds).map((name) => [
      name,
      Math.round(medianFigure(rounds, name, rateOf) ?? NaN).toLocaleString('en'),
    ]),
  };
}
