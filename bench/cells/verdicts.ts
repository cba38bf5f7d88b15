import { microseconds, together } from '../support/measures/cpu.ts';
import { type Bar, type Table, atLeast, atMost } from '../scenario.ts';
import { median, medianOrNull } from '../support/measures/statistics.ts';
import type { Disturbed } from './disturbed.ts';
import type { SideBySide } from './side-by-side.ts';
import { type SteadyFires, LIMIT_MS } from './steady-fires.ts';
import type { Sustained } from './sustained.ts';

/** Two cells do so many times what one does. */
const AT_LEAST = 1.9;
/** What happens in one cell may make the other's p99 so much more, or so many ms: less cannot be told from noise. */
const ALLOWED = { ratio: 1.1, ms: 5 };

/** One line for each set of cores: medians over the rounds. */
export function sustainedTable(results: readonly Sustained[]): Table {
  const head = ['cores', 'instances', 'fires/s', 'per core', 'p50 ms', 'p99 ms'];
  const cpu = ['CPU µs a fire: PostgreSQL', 'instances', 'target', 'fires per CPU-second', 'others'];
  return { head: [...head, ...cpu], rows: byCores(results).map(sustainedRow) };
}

function sustainedRow(rounds: readonly Sustained[]): string[] {
  const of = (pick: (step: SteadyFires) => number) =>
    median(rounds.map(({ best }) => (best === null ? NaN : pick(best))));
  const rate = median(rounds.map(({ best }) => best?.count ?? 0));
  const cpuOf = (pick: (step: SteadyFires) => number | null) =>
    medianOrNull(rounds.map(({ best }) => (best === null ? null : pick(best))));
  const each = cpuOf(({ cpuSeconds }) => together(cpuSeconds));
  const cores = rounds[0]?.cores ?? [];
  return [
    cores.join(),
    String(rounds[0]?.instances ?? 0),
    whole(rate),
    whole(rate / cores.length),
    whole(of(({ latenessMs }) => latenessMs.p50)),
    whole(of(({ latenessMs }) => latenessMs.p99)),
    microseconds(cpuOf(({ cpuSeconds }) => cpuSeconds.postgres)),
    microseconds(cpuOf(({ cpuSeconds }) => cpuSeconds.node)),
    microseconds(cpuOf(({ targetCpuSeconds }) => targetCpuSeconds)),
    each === null ? '?' : whole(1000 / each),
    `${whole(100 * of(({ othersShare }) => othersShare))} %`,
  ];
}

export function herdTable(results: readonly Sustained[]): Table {
  const rows = byCores(results).map((rounds) => {
    const of = (pick: (one: Sustained) => number | null) => median(rounds.map((one) => pick(one) ?? NaN));
    return [
      rounds[0]?.cores.join() ?? '',
      whole(of(({ herd }) => herd.firesPerSecond)),
      whole(of(({ herd }) => herd.latenessMs.p50)),
      whole(of(({ herd }) => herd.latenessMs.p99)),
    ];
  });
  return { head: ['cores', 'herd: fires/s', 'p50 ms', 'p99 ms'], rows };
}

export function sustainedVerdicts(results: readonly Sustained[]): Bar[] {
  return byCores(results).map((rounds) => {
    const p99 = median(rounds.map(({ best }) => best?.latenessMs.p99 ?? Infinity));
    const rate = whole(median(rounds.map(({ best }) => best?.count ?? 0)));
    return atMost(`p99 lateness at ${rate} fires/s on core ${rounds[0]?.cores.join() ?? ''}`, p99, 'ms', LIMIT_MS);
  });
}

export function sideBySideVerdicts({ rounds, sustained }: SideBySide): Bar[] {
  const ratio = median(rounds.map(({ alone, together: both }) => (2 * sum(both)) / sum(alone)));
  const alone = whole(sustained.alone);
  return [
    atLeast('fires/s of two cells that have a herd each, of those of one alone', ratio, '×', AT_LEAST),
    atLeast(`fires/s that two cells sustain, of the ${alone} of one alone`, 2 * sustained.share, '×', AT_LEAST),
  ];
}

export function disturbedVerdicts(rounds: readonly Disturbed[]): Bar[] {
  const quiet = median(rounds.map((one) => one.quiet.latenessMs.p99));
  const added = median(rounds.map(({ quiet: before, beside }) => beside.latenessMs.p99 - before.latenessMs.p99));
  const limit = Math.max(ALLOWED.ratio * quiet, quiet + ALLOWED.ms);
  const lost = (pick: (one: Disturbed) => number) => sum(rounds.map(pick));
  return [
    atMost('p99 lateness in cell A beside a herd and a kill -9 in cell B', quiet + added, 'ms', limit),
    atMost(
      'fires of cell A missed or repeated',
      lost(({ beside }) => beside.missed + beside.repeated),
      '',
      0,
    ),
    atMost(
      "fires of cell B's herd that did not arrive",
      lost(({ herdMissing }) => herdMissing),
      '',
      0,
    ),
  ];
}

export function verdictLine({ what, value, unit, limit, atMost: isMost, met }: Bar): string {
  const amount = (number: number) =>
    `${number.toLocaleString('en', { maximumFractionDigits: number < 10 ? 2 : 0 })} ${unit}`.trimEnd();
  const asked = limit === null ? '' : ` (${isMost ? 'at most' : 'at least'} ${amount(limit)})`;
  return `${met ? 'PASS' : 'FAIL'}  ${what}: ${amount(value)}${asked}`;
}

function byCores(results: readonly Sustained[]): Sustained[][] {
  return [...Map.groupBy(results, ({ cores }) => cores.join()).values()];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, one) => total + one, 0);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
