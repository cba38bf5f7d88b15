import type { Measured } from './herd.ts';
import type { Machine } from './support/machine.ts';
import { median, medianOrNull } from './support/statistics.ts';

export interface Report {
  machine: Machine & { postgres: string; durability: string };
  schedules: number;
  connections: number;
  /** By contestant, one entry per round. */
  rounds: Record<string, Measured[]>;
  medians: Record<string, Measured>;
  /** How firelock compares, each the median of its rounds. */
  ratios: Record<string, number>;
}

export function reportOf(measured: Omit<Report, 'medians' | 'ratios'>): Report {
  const { rounds } = measured;
  const medians = Object.fromEntries(Object.entries(rounds).map(([name, all]) => [name, medianOf(all)]));
  return { ...measured, medians, ratios: ratiosOf(rounds) };
}

/** A table to read and to paste, as Markdown. */
export function print({ machine, schedules, connections, rounds, medians, ratios }: Report): string {
  const count = Math.max(...Object.values(rounds).map((all) => all.length));
  const lines = [
    `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}`,
    `PostgreSQL ${machine.postgres}: ${machine.durability}`,
    `${schedules} schedules due in one second, ${connections} connections, median of ${count} rounds`,
    '',
    '| | fires/s | due → last delivery | lateness p50 | p99 | CPU s per 1,000 fires: Node | PostgreSQL | together |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...Object.entries(medians).map(([name, values]) => `| ${[name, ...cells(values)].join(' | ')} |`),
    '',
    ...Object.entries(ratios).map(([name, ratio]) => `${name}: ${ratio.toFixed(2)}`),
  ];
  return lines.join('\n');
}

function cells({ firesPerSecond, seconds, latenessMs, cpuSeconds: { node, postgres } }: Measured): string[] {
  const together = node === null || postgres === null ? null : node + postgres;
  return [
    Math.round(firesPerSecond).toLocaleString('en'),
    `${seconds.toFixed(2)} s`,
    latenessMs ? `${Math.round(latenessMs.p50)} ms` : '',
    latenessMs ? `${Math.round(latenessMs.p99)} ms` : '',
    ...[node, postgres, together].map((value) => value?.toFixed(3) ?? '?'),
  ];
}

function medianOf(all: readonly Measured[]): Measured {
  const lateness = all.flatMap(({ latenessMs }) => latenessMs ?? []);
  return {
    seconds: median(all.map((one) => one.seconds)),
    firesPerSecond: median(all.map((one) => one.firesPerSecond)),
    latenessMs:
      lateness.length === 0
        ? null
        : { p50: median(lateness.map(({ p50 }) => p50)), p99: median(lateness.map(({ p99 }) => p99)) },
    cpuSeconds: {
      node: medianOrNull(all.map((one) => one.cpuSeconds.node)),
      postgres: medianOrNull(all.map((one) => one.cpuSeconds.postgres)),
    },
  };
}

/** Within each round first, so that a slow moment of the machine weighs on both sides. */
function ratiosOf({ firelock = [], ...others }: Record<string, Measured[]>): Record<string, number> {
  const ratios: Record<string, number> = {};
  for (const [name, theirs] of Object.entries(others)) {
    const pairs = firelock.flatMap((ours, round) => {
      const other = theirs[round];
      return other ? [{ ours, other }] : [];
    });
    if (pairs.length === 0) continue;
    ratios[`time of firelock / ${name}`] = median(
      pairs.map(({ ours, other }) => ours.seconds / other.seconds),
    );
    const cpu = pairs.map(({ ours, other }) => quotient(cpuOf(ours), cpuOf(other)));
    const known = medianOrNull(cpu);
    if (known !== null && name === 'bare pipeline') ratios[`CPU of firelock / ${name}`] = known;
  }
  return ratios;
}

function cpuOf({ cpuSeconds: { node, postgres } }: Measured): number | null {
  return node === null || postgres === null ? null : node + postgres;
}

function quotient(ours: number | null, other: number | null): number | null {
  return ours === null || other === null ? null : ours / other;
}
