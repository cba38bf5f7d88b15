import type { StatusStep } from '../../core/runs/transitions.ts';

/**
 * The status that a statement writes, as SQL. By its arguments the statement names its row of STATUS_STEPS: what it changes, into what,
 * and in which function it stands. test/core/runs/status-steps.test.ts finds statements that do not.
 */
export function stepTo(...[, to]: StatusStep): string {
  return `'${to}'`;
}
