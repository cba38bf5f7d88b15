import { bareEntry, firelockEntry, runContest } from '../contest.ts';
import { microseconds, together } from '../support/measures/cpu.ts';
import { type EverySecond, fireEverySecond } from '../every-second.ts';
import { type Round, allOf, medianFigure, namesOf, ratioBar } from '../rounds.ts';
import { type Scenario, type Table, atMost } from '../scenario.ts';

const SIZES = {
  whole: { count: 2_000, warmUp: 5, seconds: 60 },
  quick: { count: 100, warmUp: 2, seconds: 5 },
};
const WAIT_LIMIT_MS = 30_000;

export const steady: Scenario = {
  name: 'steady',
  title: 'schedules that all fire every second for a while',
  run: async (bench) => {
    const size = SIZES[bench.quick ? 'quick' : 'whole'];
    const rounds = await runContest(
      bench,
      [bareEntry('pipeline'), firelockEntry()],
      async ({ contestant, stage }) => {
        const plan = { ...size, waitLimitMs: WAIT_LIMIT_MS, checksHistory: true };
        const measured = await fireEverySecond(contestant, stage, plan);
        const { name } = contestant;
        if (!measured.settled) throw new Error(`${name} did not settle what it fired`);
        // Firelock's are a bar; the other's would make the comparison worthless.
        if (name !== 'firelock' && wrong(measured) > 0) throw new Error(`${name} missed or repeated fires`);
        return measured;
      },
      (measured) => `p99 ${Math.round(p99(measured))} ms late, ${wrong(measured)} missed or repeated`,
    );
    const ours = allOf(rounds, 'firelock');
    const pair = { ours: 'firelock', theirs: 'bare pipeline' };
    return {
      scenario: steady.name,
      rounds,
      table: tableOf(rounds),
      bars: [
        atMost('fires missed or repeated', sum(ours.map(wrong)), '', 0),
        ...ratioBar(rounds, { what: 'p99 lateness', ...pair, figure: p99, atMost: 1.5, aim: 1.2 }),
        ...ratioBar(rounds, { what: 'CPU', ...pair, figure: cpu, atMost: 1.7, aim: 1.5 }),
      ],
      notes: [
        `${size.count.toLocaleString('en')} schedules for ${size.seconds} s, after ${size.warmUp} s that do not count.`,
      ],
    };
  },
};

function tableOf(rounds: readonly Round<EverySecond>[]): Table {
  const figure = (name: string, of: (one: EverySecond) => number | null) => medianFigure(rounds, name, of);
  const ms = (value: number | null) => (value === null ? '?' : `${Math.round(value)} ms`);
  return {
    head: ['', 'lateness p50', 'p99', 'max', 'missed or repeated', 'CPU µs a fire: Node', 'PostgreSQL', 'together'],
    rows: namesOf(rounds).map((name) => [
      name,
      ...[p50, p99, max].map((of) => ms(figure(name, of))),
      String(sum(allOf(rounds, name).map(wrong))),
      ...[node, postgres, cpu].map((of) => microseconds(figure(name, of))),
    ]),
  };
}

const wrong = ({ missed, repeated }: EverySecond) => missed + repeated;
const p50 = ({ latenessMs }: EverySecond) => latenessMs.p50;
const p99 = ({ latenessMs }: EverySecond) => latenessMs.p99;
const max = ({ latenessMs }: EverySecond) => latenessMs.max;
const node = ({ cpuSeconds }: EverySecond) => cpuSeconds.node;
const postgres = ({ cpuSeconds }: EverySecond) => cpuSeconds.postgres;
const cpu = ({ cpuSeconds }: EverySecond) => together(cpuSeconds);

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
