import { type Instant, isoInstant } from '../../core/instant.ts';

/** When schedules fire: from `from` on, and before `to`. */
export interface Times {
  from: Instant;
  to: Instant;
}

export interface DemoSchedule {
  id: string;
  everySeconds: number;
  /** The seconds are those of the clock's minute, as of a cron pattern; otherwise they count from the first fire on. */
  byCron: boolean;
  /** How long its receiver takes. */
  holdMs: number;
}

/** Six of ten fire each second, three every few seconds of the clock, and one at an interval. */
export function makeSchedules(count: number): DemoSchedule[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `demo-${String(index + 1).padStart(4, '0')}`,
    ...ruleOf(index),
    // From 40 to 240 ms: something is always under way when an instance dies.
    holdMs: 40 + ((index * 37) % 200),
  }));
}

function ruleOf(index: number): Pick<DemoSchedule, 'byCron' | 'everySeconds'> {
  const place = index % 10;
  if (place === 9) return { byCron: false, everySeconds: 3 + (Math.floor(index / 10) % 4) };
  return { byCron: true, everySeconds: place < 6 ? 1 : ([2, 3, 5][place % 3] ?? 2) };
}

/** As `POST /schedules/batch` takes it. All else is as a schedule has it by default. */
export function batchItemOf(schedule: DemoSchedule, { from, to }: Times, receiverUrl: string) {
  const { id, byCron, everySeconds, holdMs } = schedule;
  return {
    ...{ id, startAt: isoInstant(from), endAt: isoInstant(to) },
    ...(byCron ? { cron: `*/${everySeconds} * * * * *` } : { everySeconds }),
    target: { type: 'http', url: `${receiverUrl}/${holdMs}` },
    retry: { minBackoffSeconds: 1, maxBackoffSeconds: 5 },
  };
}

/** By its own rule, and nothing of the daemon's. `from` is a whole second. */
export function dueMoments({ byCron, everySeconds }: DemoSchedule, { from, to }: Times): Instant[] {
  const moments: Instant[] = [];
  for (let at = from; at < to; at += 1000) {
    const seconds = byCron ? (at / 1000) % 60 : (at - from) / 1000;
    if (seconds % everySeconds === 0) moments.push(at);
  }
  return moments;
}
