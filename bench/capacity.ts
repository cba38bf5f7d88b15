/**
 * How many fires a second one PostgreSQL and its instances sustain on cores that they are kept on; whether two such installations
 * (cells), each on a core of its own, do twice that; and whether what happens in one is felt in the other. docs/scaling.md shows it.
 *
 *     npm run capacity -- [--cores 0,1] [--target-cores LIST] [--only sustained,cells,isolation] [--seconds N] [--rounds N]
 *       [--herd N] [--steady N] [--postgres MAJOR] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { measureDisturbed } from './cells/disturbed.ts';
import { closeCells, parseCores, pin, pinningTrouble } from './cells/cell.ts';
import { type SideBySide, measureSideBySide } from './cells/side-by-side.ts';
import { type Plan, type Sustained, measureSustained } from './cells/sustained.ts';
import {
  disturbedVerdicts,
  herdTable,
  sideBySideVerdicts,
  sustainedTable,
  sustainedVerdicts,
  verdictLine,
} from './cells/verdicts.ts';
import { tableLines } from './report.ts';
import type { Bar } from './scenario.ts';
import { describeMachine } from './support/measures/machine.ts';
import { median } from './support/measures/statistics.ts';
import { buildDaemon } from './support/processes/daemon.ts';

const PARTS = ['sustained', 'cells', 'isolation'];

const { values: options } = parseArgs({
  options: {
    /** What PostgreSQL and instances may use; each cell has one of the first two. */
    cores: { type: 'string', default: '0,1' },
    /** Of the targets; else each is on the cores of its installation. */
    'target-cores': { type: 'string' },
    only: { type: 'string', default: PARTS.join() },
    /** Of each measured period. */
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
    herd: { type: 'string', default: '10000' },
    /** Fires a second of each cell, where one is to feel nothing of the other. */
    steady: { type: 'string', default: '500' },
    /** A major version; else the embedded one. */
    postgres: { type: 'string' },
    json: { type: 'string' },
  },
});

const wanted = options.only.split(',');
const unknown = wanted.filter((part) => !PARTS.includes(part));
if (unknown.length > 0) throw new Error(`no part ${unknown.join()}; there are ${PARTS.join()}`);
const cores = parseCores(options.cores);
const targetCores = options['target-cores'] === undefined ? null : parseCores(options['target-cores']);
const [seconds, rounds, herd, steady] = (['seconds', 'rounds', 'herd', 'steady'] as const).map((name) => {
  const value = Number(options[name]);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1`);
  return value;
}) as [number, number, number, number];
if (options.postgres !== undefined && !/^\d+$/.test(options.postgres))
  throw new Error('--postgres must be a major version: a server that runs cannot be kept on cores');
if (wanted.some((part) => part !== 'sustained') && cores.length < 2)
  throw new Error('cells need two cores: --cores 0,1, or --only sustained');
const trouble = pinningTrouble([...cores, ...(targetCores ?? [])]);
if (trouble !== null) {
  console.error(trouble);
  process.exit(1);
}

await run();

async function run(): Promise<void> {
  const build = buildDaemon();
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => void closeCells().finally(() => process.exit(1)));
  process.once('exit', () => build.remove());
  console.log(JSON.stringify(describeMachine()));
  console.log(whereItRuns());
  // Its own work must not be where one core is measured alone; it sleeps while it measures.
  pin(process.pid, cores.slice(-1));
  const ground = { main: build.main, postgres: options.postgres ?? null, targetCores };
  const plan: Plan = { ...ground, cores, seconds, rounds, herd, say: (line) => console.log(line) };
  const sustained = wanted.includes('sustained') ? await measureSustained(plan) : [];
  const cells = wanted.includes('cells') ? await measureSideBySide(plan, ofOneCore(sustained)) : null;
  const disturbed = wanted.includes('isolation') ? await measureDisturbed({ ...plan, steady }) : [];
  report(sustained, cells, disturbed);
}

function ofOneCore(results: readonly Sustained[]): number | null {
  const rates = results.filter((one) => one.cores.length === 1).map(({ best }) => best?.count ?? 0);
  return rates.length === 0 ? null : median(rates);
}

function report(
  sustained: readonly Sustained[],
  cells: SideBySide | null,
  disturbed: Awaited<ReturnType<typeof measureDisturbed>>,
): void {
  for (const table of sustained.length > 0 ? [sustainedTable(sustained), herdTable(sustained)] : [])
    console.log(`\n${tableLines(table).join('\n')}`);
  const bars: Bar[] = [
    ...sustainedVerdicts(sustained),
    ...(cells === null ? [] : sideBySideVerdicts(cells)),
    ...(disturbed.length === 0 ? [] : disturbedVerdicts(disturbed)),
  ];
  console.log(`\n${bars.map(verdictLine).join('\n')}`);
  if (options.json !== undefined) {
    const all = { machine: describeMachine(), options, sustained, cells, disturbed, bars };
    writeFileSync(options.json, `${JSON.stringify(all, null, 2)}\n`);
  }
  if (bars.some(({ met }) => !met)) process.exitCode = 1;
}

function whereItRuns(): string {
  const target = targetCores === null ? 'share these cores' : `are on core ${targetCores.join()}`;
  return `PostgreSQL and instances are kept on core ${cores.join()}; the targets ${target}. Medians of ${rounds} rounds of ${seconds} s.`;
}
