import type { Paint } from '../../terminal/paint.ts';
import type { Verdict } from './verdict.ts';
import { FAULTS, type FaultKind } from './evidence.ts';

export interface Told {
  verdict: Verdict;
  kills: number;
  lost: number;
  recovered: number;
  /** Null: everything had ended before the limit, in milliseconds. */
  undrainedAfterMs: number | null;
}

const MOST_EXAMPLES = 5;

/** What the demo ends with. */
export function verdictLines(
  { verdict, kills, lost, recovered, undrainedAfterMs }: Told,
  paint: Paint,
): string[] {
  const { due, delivered, skipped, repeatedAfterDeath, faults } = verdict;
  const row = (text: string, count: number) =>
    `  ${text.padEnd(WIDTH)}${count.toLocaleString('en').padStart(8)}`;
  const found = (Object.keys(FAULTS) as FaultKind[]).filter((fault) => faults[fault].length > 0);
  return [
    paint('bold', 'The verdict'),
    row('due, by the rules of the schedules', due),
    row('delivered', delivered),
    row('skipped, since the run before was under way', skipped),
    row('missing', faults.missing.length),
    row('delivered again after the death of their sender', repeatedAfterDeath),
    row('delivered again for no reason', faults.repeated.length + faults.otherId.length),
    row('instances killed with -9', kills),
    row('runs that were lost with them', lost),
    row('recovered', recovered),
    ...(undrainedAfterMs === null
      ? []
      : [
          paint(
            'red',
            `Not everything had ended ${Math.round(undrainedAfterMs / 1000)} s after the last fire.`,
          ),
        ]),
    ...found.flatMap((fault) => faultLines(fault, faults[fault], paint)),
    verdict.ok
      ? paint('green', 'No fire was lost.')
      : paint('red', 'firelock did not keep its promise. Please report what stands above.'),
  ];
}

const WIDTH = 50;

function faultLines(fault: FaultKind, examples: readonly string[], paint: Paint): string[] {
  const more = examples.length - MOST_EXAMPLES;
  return [
    paint('red', `${examples.length.toLocaleString('en')} ${FAULTS[fault]}:`),
    ...examples.slice(0, MOST_EXAMPLES).map((example) => `  ${example}`),
    ...(more > 0 ? [`  and ${more.toLocaleString('en')} more`] : []),
  ];
}
