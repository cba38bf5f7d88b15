import { type Bench, type Scenario, type ScenarioResult, atMost } from '../scenario.ts';
import { type HostLoad, type HostPeriod, measureHosts } from '../support/measures/host-lateness.ts';
import { median } from '../support/measures/statistics.ts';

/** Of the target: how long a host that hangs holds a slot. */
const TIMEOUT_SECONDS = 10;
const MAX_ROUNDS = 5;
/** The ratio or, where that is more, so many milliseconds. */
const ALLOWED = { ratio: 1.2, ms: 50 };

/** One set of hosts that answer, measured beside each of the others; the first of these is what all of them are compared with. */
interface Comparison {
  title: string;
  hosts: number;
  firesPerSecondOfHost: number;
  beside: Beside[];
}

interface Beside extends Omit<HostLoad['others'], 'areSilent'> {
  title: string;
  isSilent: boolean;
}

type Round = Record<string, Record<string, HostPeriod>>;

export const slowTargets: Scenario = {
  name: 'slow-targets',
  title: 'hosts that take requests and never answer: lateness at the others',
  run: async (bench) => {
    const comparisons = comparisonsOf(bench);
    const rounds: Round[] = [];
    const wanted = Math.min(bench.rounds, MAX_ROUNDS);
    while (rounds.length < wanted) {
      const round: Round = {};
      for (const comparison of comparisons) {
        round[comparison.title] = await compare(bench, comparison, rounds.length % 2 === 0);
        const latencies = comparison.beside.map(({ title }) => `${ms(p99(round, comparison, title))} ${title}`);
        bench.log(`round ${rounds.length + 1}: ${comparison.title}: p99 ${latencies.join(', ')}`);
      }
      rounds.push(round);
    }
    return resultOf(rounds, comparisons);
  },
};

function comparisonsOf({ quick }: Bench): Comparison[] {
  const firesPerSecondOfHost = quick ? 5 : 50;
  return [
    {
      title: `19 hosts, ${firesPerSecondOfHost} fires/s each`,
      hosts: 19,
      firesPerSecondOfHost,
      beside: [
        { title: 'beside one that is well', hosts: 1, firesPerSecondOfHost, isSilent: false },
        { title: 'beside one that hangs', hosts: 1, firesPerSecondOfHost, isSilent: true },
      ],
    },
    {
      title: '100 hosts, 1 fire/s each',
      hosts: 100,
      firesPerSecondOfHost: 1,
      beside: [
        { title: 'alone', hosts: 0, firesPerSecondOfHost: 0, isSilent: false },
        // What so many fires cost where none of them hangs.
        {
          title: 'beside 20 that are well, 20 fires/s each',
          hosts: 20,
          firesPerSecondOfHost: 20,
          isSilent: false,
        },
        { title: 'beside 5 that hang, 20 fires/s each', hosts: 5, firesPerSecondOfHost: 20, isSilent: true },
        {
          title: 'beside 20 that hang, 20 fires/s each',
          hosts: 20,
          firesPerSecondOfHost: 20,
          isSilent: true,
        },
        {
          title: 'beside 100 that hang, 4 fires/s each',
          hosts: 100,
          firesPerSecondOfHost: 4,
          isSilent: true,
        },
      ],
    },
  ];
}

async function compare(
  bench: Bench,
  { hosts, firesPerSecondOfHost, beside }: Comparison,
  forwards: boolean,
): Promise<Record<string, HostPeriod>> {
  const periods: Record<string, HostPeriod> = {};
  for (const { title, isSilent, ...others } of forwards ? beside : beside.toReversed()) {
    periods[title] = await measureHosts(bench, {
      hosts,
      firesPerSecondOfHost,
      others: { ...others, areSilent: isSilent },
      timeoutSeconds: TIMEOUT_SECONDS,
      ...(bench.quick ? { settleSeconds: 4, seconds: 4 } : { settleSeconds: TIMEOUT_SECONDS + 5, seconds: 20 }),
    });
  }
  return periods;
}

function periodOf(round: Round, comparison: Comparison, title: string): HostPeriod {
  const period = round[comparison.title]?.[title];
  if (!period) throw new Error(`${title} was not measured`);
  return period;
}

function p99(round: Round, comparison: Comparison, title: string): number {
  return periodOf(round, comparison, title).latenessMs.p99;
}

function resultOf(rounds: readonly Round[], comparisons: readonly Comparison[]): ScenarioResult {
  const compared = comparisons.flatMap((comparison) => {
    const [reference, ...others] = comparison.beside;
    return others.map(({ title }) => comparedWith(rounds, comparison, reference?.title ?? '', title));
  });
  return {
    scenario: 'slow-targets',
    rounds: rounds.map((round) => ({ ...round })),
    table: {
      head: ['hosts that answer', 'lateness p50', 'p99', 'longest', 'CPU s per 1,000 of their fires'],
      rows: comparisons.flatMap((comparison) => comparison.beside.map(({ title }) => rowOf(rounds, comparison, title))),
    },
    bars: compared.map(({ bar }) => bar),
    notes: compared.map(({ note }) => note),
  };
}

/** In each round by itself, since the machine is not the same in all of them. */
function comparedWith(rounds: readonly Round[], comparison: Comparison, reference: string, title: string) {
  const before = median(rounds.map((round) => p99(round, comparison, reference)));
  const more = rounds.map((round) => p99(round, comparison, title) - p99(round, comparison, reference));
  const ratios = rounds.map((round) => p99(round, comparison, title) / p99(round, comparison, reference));
  const missing = rounds.reduce((sum, round) => sum + periodOf(round, comparison, title).missing, 0);
  // 20 % of what is a few milliseconds is nothing that can be told from noise.
  const allowed = Math.max(ALLOWED.ms, (ALLOWED.ratio - 1) * before);
  const what = `${comparison.title}, ${title}`;
  const unsent = missing > 0 ? `; ${missing} fires had not arrived after 30 s` : '';
  return {
    bar: atMost(`p99 lateness that is added to ${what}`, median(more), 'ms', allowed),
    note: `${what}: p99 is ${median(ratios).toFixed(2)} × that ${reference}${unsent}`,
  };
}

function rowOf(rounds: readonly Round[], comparison: Comparison, title: string): string[] {
  const of = (value: (period: HostPeriod) => number) =>
    median(rounds.map((round) => value(periodOf(round, comparison, title))));
  return [
    `${comparison.title}, ${title}`,
    ms(of(({ latenessMs }) => latenessMs.p50)),
    ms(of(({ latenessMs }) => latenessMs.p99)),
    ms(of(({ latenessMs }) => latenessMs.max)),
    of(
      ({ cpuSeconds, fires }) => (((cpuSeconds.daemons ?? NaN) + (cpuSeconds.postgres ?? NaN)) * 1000) / fires,
    ).toFixed(3),
  ];
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}
