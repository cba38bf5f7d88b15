import { FAULTS, type Faults, type Verdict } from './verdict.ts';

interface Told {
  verdict: Verdict;
  kills: number;
  lost: number;
  recovered: number;
  /** Everything had ended before the limit. */
  isDrained: boolean;
}

const WIDTH = 50;
const MOST_EXAMPLES = 5;

/** What the demo ends with. */
export function verdictLines({ verdict, kills, lost, recovered, isDrained }: Told): string[] {
  const { due, delivered, repeatedAfterDeath, faults } = verdict;
  const row = (text: string, count: number) =>
    `  ${text.padEnd(WIDTH)}${count.toLocaleString('en').padStart(8)}`;
  return [
    'The verdict',
    row('due, by the rules of the schedules', due),
    row('delivered', delivered),
    row('missing', faults.missing.length),
    row('delivered again after the death of their sender', repeatedAfterDeath),
    row('delivered again for no reason', faults.repeated.length + faults.otherId.length),
    row('instances killed with -9', kills),
    row('runs that were lost with them', lost),
    row('recovered', recovered),
    ...(isDrained ? [] : ['Not everything had ended a minute after the last fire.']),
    ...(Object.keys(FAULTS) as (keyof Faults)[]).flatMap((fault) => faultLines(FAULTS[fault], faults[fault])),
    verdict.ok ? 'No fire was lost.' : 'firelock did not keep its promise. Please report what stands above.',
  ];
}

function faultLines(what: string, examples: readonly string[]): string[] {
  const { length } = examples;
  if (length === 0) return [];
  const more = length > MOST_EXAMPLES ? [`  and ${length - MOST_EXAMPLES} more`] : [];
  return [`${length} ${what}:`, ...examples.slice(0, MOST_EXAMPLES).map((one) => `  ${one}`), ...more];
}
