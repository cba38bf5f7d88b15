import type { History } from './history.ts';

/** Between two moments that a checker compares lie some steps of several processes, each of which waits for the processor. */
const STEPS = 20;

/**
 * How much later than in `withinMs` something may have come about at that moment, by what the machine took for nothing around it: next to
 * nothing where it is not busy, and seconds where it is.
 */
export function slackOf({ beats }: History, at: number, withinMs: number): number {
  let slack = 0;
  // What comes later by that may meet a longer one.
  for (let found = -1; found < slack;) {
    found = slack;
    const [from, to] = [at - withinMs, at + withinMs + found];
    for (const beat of beats) {
      if (beat.to >= from && beat.from <= to) slack = Math.max(slack, STEPS * beat.ms);
    }
  }
  return slack;
}
