import type { Outcome, Step } from './run-steps.ts';

/** What was done, a line each: seconds, what became of it, and why it was skipped. */
export function tableOf(outcomes: readonly Outcome[]): string {
  const lines = outcomes.map(({ name, seconds, result, why }) =>
    `${String(seconds).padStart(6)}  ${result.padEnd(7)}  ${name}${result === 'skipped' ? `: ${why}` : ''}`.trimEnd(),
  );
  const all = outcomes.reduce((sum, { seconds }) => sum + seconds, 0);
  return ['Seconds of each step:', ...lines, `${String(all).padStart(6)}  in all`].join('\n');
}

/** What the failed ones said: who sees only the end of a long log sees this. */
export function failuresOf(outcomes: readonly Outcome[]): string {
  return outcomes
    .filter(({ result }) => result === 'failed')
    .map(({ name, why }) => `== failed: ${name}\n${why}\n`)
    .join('\n');
}

/** The last line of a run. A step that failed without a failed test in it counts as one. */
export function countsOf(outcomes: readonly Outcome[], interrupted: boolean): { passed: number; failed: number } {
  const sum = (of: 'passed' | 'failed') => outcomes.reduce((total, outcome) => total + outcome[of], 0);
  return { passed: sum('passed'), failed: sum('failed') + (interrupted ? 1 : 0) };
}

export function listOf(steps: readonly Step[]): string {
  return steps.map(({ name, needs }) => (needs === undefined ? name : `${name.padEnd(20)}  needs ${needs}`)).join('\n');
}
