import type { Bar, ScenarioResult, Table } from './scenario.ts';
import type { Machine } from './support/measures/machine.ts';

export interface Report {
  startedAt: string;
  machine: Machine & { postgres: string; durability: string };
  firelock: { version: string; commit: string | null };
  options: Record<string, unknown>;
  /** The daemon's variables that were set for this run. */
  variables: Record<string, string>;
  scenarios: (ScenarioResult & { seconds: number })[];
  /** Scenarios that could not be measured, with the reason. */
  failed: Record<string, string>;
}

export function printMachine({ machine, firelock }: Report): string {
  return [
    `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}`,
    `PostgreSQL ${machine.postgres}: ${machine.durability}`,
    `firelock ${[firelock.version, firelock.commit].filter((part) => part !== null).join(', ')}`,
  ].join('\n');
}

/** A table to read and to paste, as Markdown; below it the bars and what is to be known. */
export function printResult({ table, bars, notes }: ScenarioResult): string {
  return [...tableLines(table), '', ...bars.map(barLine), ...notes.map((note) => `- ${note}`)].join('\n');
}

/** As Markdown. */
export function tableLines({ head, rows }: Table): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => pad(cells[at] ?? '', width, at > 0)).join(' | ')} |`;
  const rule = widths.map((width, at) => (at > 0 ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)));
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)];
}

/** All bars of all scenarios, the missed ones last. */
export function printBars({ scenarios, failed }: Report): string {
  const lines = (met: boolean) =>
    scenarios.flatMap(({ scenario, bars }) =>
      bars.filter((bar) => bar.met === met).map((bar) => `${scenario}: ${barLine(bar)}`),
    );
  return [
    ...lines(true),
    ...lines(false),
    ...Object.entries(failed).map(([name, reason]) => `${name}: FAILED: ${reason}`),
  ].join('\n');
}

function pad(text: string, width: number, right: boolean): string {
  return right ? text.padStart(width) : text.padEnd(width);
}

function barLine({ what, value, unit, limit, aim, atMost, met }: Bar): string {
  const amount = (number: number) => `${precise(number)}${unit === '' ? '' : ` ${unit}`}`;
  const word = limit === null ? 'told  ' : met ? 'met   ' : 'MISSED';
  const reached = aim !== null && (atMost ? value <= aim : value >= aim);
  const asked = [
    ...(limit === null ? [] : [`${atMost ? 'at most' : 'at least'} ${amount(limit)}`]),
    ...(aim === null ? [] : [`aim ${amount(aim)}, ${reached ? 'reached' : 'not reached'}`]),
  ];
  return `${word} ${what}: ${amount(value)} (${asked.join('; ')})`;
}

function precise(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 });
}
