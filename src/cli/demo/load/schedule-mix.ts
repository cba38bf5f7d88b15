import { type Instant, isoInstant } from '../../../core/instant.ts';

type Kind = 'second' | 'few' | 'interval' | 'callback' | 'pull' | 'overlap';

/** The rule by which it fires, as the API takes it. */
export type Rule = { cron: string } | { everySeconds: number };

export interface DemoSchedule {
  id: string;
  kind: Kind;
  rule: Rule;
  /** How long its receiver takes. */
  holdMs: number;
}

/** The queue of the schedules that a worker pulls. */
export const QUEUE = 'demo';

/** Of ten schedules. */
const MIX: readonly Kind[] = [
  ...(['second', 'few', 'second', 'callback', 'second'] as const),
  ...(['overlap', 'few', 'second', 'interval', 'pull'] as const),
];

export function makeSchedules(count: number): DemoSchedule[] {
  return Array.from({ length: count }, (_, index) => {
    const kind = MIX[index % MIX.length] ?? 'second';
    const id = `${kind}-${String(index + 1).padStart(4, '0')}`;
    // From 40 to 240 ms: something is always under way when an instance dies.
    const holdMs = kind === 'overlap' ? 1_500 : 40 + ((index * 37) % 200);
    return { id, kind, rule: ruleOf(kind, index), holdMs };
  });
}

function ruleOf(kind: Kind, index: number): Rule {
  if (kind === 'interval') return { everySeconds: 3 + (Math.floor(index / MIX.length) % 4) };
  if (kind === 'second' || kind === 'overlap') return { cron: '* * * * * *' };
  const seconds = [2, 3, 5][index % 3] ?? 2;
  return { cron: `*/${seconds} * * * * *` };
}

interface Around {
  from: Instant;
  /** Exclusive. */
  to: Instant;
  receiverUrl: string;
}

/** As `POST /schedules/batch` takes it. All else is as a schedule has it by default. */
export function batchItemOf(schedule: DemoSchedule, { from, to, receiverUrl }: Around) {
  const { id, kind, rule, holdMs } = schedule;
  return {
    id,
    ...rule,
    startAt: isoInstant(from),
    endAt: isoInstant(to),
    target:
      kind === 'pull'
        ? { type: 'pull', queue: QUEUE }
        : { type: 'http', url: `${receiverUrl}/${kind}/${holdMs}` },
    labels: { demo: kind },
    retry: { minBackoffSeconds: 1, maxBackoffSeconds: 5 },
    ...(kind === 'overlap' ? { overlap: 'skip' } : {}),
    ...(kind === 'callback' ? { completion: 'callback' } : {}),
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
