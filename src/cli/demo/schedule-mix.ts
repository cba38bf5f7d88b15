import { type Instant, isoInstant } from '../../core/instant.ts';

/** The rule by which a schedule fires, as the API takes it. */
export type Rule = { cron: string } | { everySeconds: number };

export interface DemoSchedule {
  id: string;
  rule: Rule;
  /** How long its receiver takes. */
  holdMs: number;
}

/** Six of ten fire each second, three every few seconds of the clock, and one at an interval. */
export function makeSchedules(count: number): DemoSchedule[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `demo-${String(index + 1).padStart(4, '0')}`,
    rule: ruleOf(index),
    // From 40 to 240 ms: something is always under way when an instance dies.
    holdMs: 40 + ((index * 37) % 200),
  }));
}

function ruleOf(index: number): Rule {
  const place = index % 10;
  if (place === 9) return { everySeconds: 3 + (Math.floor(index / 10) % 4) };
  return { cron: place < 6 ? '* * * * * *' : `*/${[2, 3, 5][place % 3] ?? 2} * * * * *` };
}

interface Around {
  from: Instant;
  /** Exclusive. */
  to: Instant;
  receiverUrl: string;
}

/** As `POST /schedules/batch` takes it. All else is as a schedule has it by default. */
export function batchItemOf({ id, rule, holdMs }: DemoSchedule, { from, to, receiverUrl }: Around) {
  return {
    ...{ id, ...rule, startAt: isoInstant(from), endAt: isoInstant(to) },
    target: { type: 'http', url: `${receiverUrl}/${holdMs}` },
    retry: { minBackoffSeconds: 1, maxBackoffSeconds: 5 },
  };
}

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
