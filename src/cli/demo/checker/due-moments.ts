import type { Instant } from '../../../core/instant.ts';
import type { Rule } from '../load/schedule-mix.ts';

/**
 * When a schedule is due from `from` on and before `to`, by its own rule and nothing of the daemon's: every so many
 * seconds of a minute (`*` or a star with a step), or every so many seconds from `from` on.
 */
export function dueMoments(rule: Rule, { from, to }: { from: Instant; to: Instant }): Instant[] {
  const isDue =
    'cron' in rule ? secondTest(rule.cron) : (at: Instant) => (at - from) % (rule.everySeconds * 1000) === 0;
  const moments: Instant[] = [];
  for (let at = Math.ceil(from / 1000) * 1000; at < to; at += 1000) if (isDue(at)) moments.push(at);
  return moments;
}

function secondTest(cron: string): (at: Instant) => boolean {
  const step = /^\*(?:\/(\d+))?(?: \*){5}$/.exec(cron);
  if (step === null) throw new Error(`the demo cannot tell when ${cron} is due`);
  const seconds = Number(step[1] ?? 1);
  return (at) => ((at / 1000) % 60) % seconds === 0;
}
