import { type Round, allOf, namesOf } from './rounds.ts';
import { microseconds, together } from './cpu-time.ts';
import type { Measured } from './herd.ts';
import type { Table } from './scenario.ts';
import { median, medianOrNull } from './support/measures/statistics.ts';

const HEAD = [
  '',
  'fires/s',
  'due → last delivery',
  'lateness p50',
  'p99',
  'CPU µs a fire: Node',
  'PostgreSQL',
  'together',
  'memory',
];

/** The medians of each, one row each. */
export function herdTable(rounds: readonly Round<Measured>[]): Table {
  return { head: HEAD, rows: namesOf(rounds).map((name) => [name, ...cells(allOf(rounds, name))]) };
}

export function herdSummary({ firesPerSecond }: Measured): string {
  return `${Math.round(firesPerSecond).toLocaleString('en')} fires/s`;
}

export function secondsOf({ seconds }: Measured): number {
  return seconds;
}

/** The CPU of a herd per 1,000 fires, as figures to compare. */
export function cpuOf({ cpuSeconds }: Measured): number | null {
  return together(cpuSeconds);
}

export function nodeCpuOf({ cpuSeconds }: Measured): number | null {
  return cpuSeconds.node;
}

export function postgresCpuOf({ cpuSeconds }: Measured): number | null {
  return cpuSeconds.postgres;
}

function cells(all: readonly Measured[]): string[] {
  const { node, postgres } = {
    node: medianOrNull(all.map(({ cpuSeconds }) => cpuSeconds.node)),
    postgres: medianOrNull(all.map(({ cpuSeconds }) => cpuSeconds.postgres)),
  };
  const megabytes = medianOrNull(all.map(({ residentMegabytes }) => residentMegabytes));
  const lateness = (figure: 'p50' | 'p99') => {
    const value = medianOrNull(all.map(({ latenessMs }) => latenessMs?.[figure] ?? null));
    return value === null ? '' : `${Math.round(value)} ms`;
  };
  return [
    Math.round(median(all.map(({ firesPerSecond }) => firesPerSecond))).toLocaleString('en'),
    `${median(all.map(({ seconds }) => seconds)).toFixed(2)} s`,
    lateness('p50'),
    lateness('p99'),
    ...[node, postgres, together({ node, postgres })].map(microseconds),
    megabytes === null ? '?' : `${megabytes.toFixed(0)} MB`,
  ];
}
