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

/** All that the checker is given: what was asked for, what arrived, what was killed, and what explains a second delivery. */
export interface Evidence extends Times {
  schedules: readonly DemoSchedule[];
  /** In the order of arrival. */
  deliveries: readonly DeliveredRun[];
  /** Who made the attempts of the runs that came more than once, by run id. */
  senders: ReadonlyMap<string, readonly SentAttempt[]>;
  /** By the id of the instance. */
  kills: ReadonlyMap<string, KillTime>;
  stats: Pick<DemoStats, Unfinished>;
}

/** One run that has reached the receiver. */
export interface DeliveredRun {
  scheduleId: string;
  scheduledFor: Instant;
  runId: string;
  attempt: number;
  /** The idempotency key that came with it. */
  key: string;
  at: Instant;
}

export interface SentAttempt {
  attempt: number;
  instanceId: string;
}

/** From the moment of the kill to that at which the process was gone. */
export interface KillTime {
  from: Instant;
  to: Instant;
}

const UNFINISHED = ['openRuns', 'failedRuns', 'unknownRuns', 'abandonedRuns', 'cancelledRuns'] as const;
type Unfinished = (typeof UNFINISHED)[number];
/** firelock's own count of all runs. */
export type DemoStats = Record<Unfinished | 'totalRuns' | 'lostRuns' | 'recoveredRuns', number>;

/** Kinds of broken promises, in the words of the verdict. */
const FAULTS = {
  missing: 'due, and not delivered',
  notDue: 'delivered, and not due',
  early: 'delivered before their moment',
  otherId: 'delivered under a second run id',
  otherKey: 'delivered with another key than the run id',
  repeated: 'delivered again although their sender lived',
  unfinished: 'left open, or ended without success',
} as const;
export type Faults = Record<keyof typeof FAULTS, string[]>;

interface Verdict {
  ok: boolean;
  due: number;
  /** Of those, delivered. */
  delivered: number;
  /** Deliveries again after the death of their sender. */
  repeatedAfterDeath: number;
  /** Each with the occurrences or runs that it is about. */
  faults: Faults;
}

/** The database's clock and the receiver's are one machine's; what is left is when each of them looks at it. */
const EARLY_MS = 50;

/** Compares what was due, by the schedules' own rules, with what has arrived. */
export function check(evidence: Evidence): Verdict {
  const { schedules, deliveries, stats } = evidence;
  const occurrences = schedules.flatMap((schedule) =>
    dueMoments(schedule, evidence).map((at) => occurrenceOf({ scheduleId: schedule.id, scheduledFor: at })),
  );
  const due = new Set(occurrences);
  const first = new Map<string, DeliveredRun>();
  for (const one of deliveries) if (!first.has(occurrenceOf(one))) first.set(occurrenceOf(one), one);
  const those = (isFault: (delivery: DeliveredRun) => boolean) => deliveries.filter(isFault).map(occurrenceOf);
  const firstIdOf = (one: DeliveredRun) => first.get(occurrenceOf(one))?.runId;
  const { explained, repeated } = checkRepeats(evidence);
  const faults: Faults = {
    missing: [...due].filter((one) => !first.has(one)),
    notDue: those((one) => !due.has(occurrenceOf(one))),
    early: those(({ at, scheduledFor }) => at < scheduledFor - EARLY_MS),
    otherId: deliveries.flatMap((one) =>
      one.runId === firstIdOf(one) ? [] : [`${occurrenceOf(one)}: ${firstIdOf(one)}, then ${one.runId}`],
    ),
    otherKey: those(({ key, runId }) => key !== runId),
    repeated,
    unfinished: UNFINISHED.flatMap((name) => (stats[name] > 0 ? [`${stats[name]} ${name.replace('Runs', '')}`] : [])),
  };
  return {
    ok: Object.values(faults).every(({ length }) => length === 0),
    due: due.size,
    delivered: [...first.keys()].filter((one) => due.has(one)).length,
    repeatedAfterDeath: explained,
    faults,
  };
}

/**
 * A run may come again only if the instance that sent it before was killed after it was due, and before it came again. (What a dead
 * instance has sent may still be on its way: on a busy machine it arrives after the death.) Every other repeat is a fault.
 */
function checkRepeats({ deliveries, senders, kills }: Evidence): { explained: number; repeated: string[] } {
  const last = new Map<string, DeliveredRun>();
  const found = { explained: 0, repeated: [] as string[] };
  for (const delivery of deliveries) {
    const before = last.get(delivery.runId);
    last.set(delivery.runId, delivery);
    if (before === undefined) continue;
    const sender = senders.get(delivery.runId)?.find(({ attempt }) => attempt === before.attempt);
    const kill = kills.get(sender?.instanceId ?? '');
    const isOther = before.attempt !== delivery.attempt;
    if (isOther && kill !== undefined && before.scheduledFor <= kill.to && kill.from <= delivery.at)
      found.explained += 1;
    else found.repeated.push(`${occurrenceOf(delivery)}, attempts ${before.attempt} and ${delivery.attempt}`);
  }
  return found;
}

/** What names one occurrence of one schedule. */
function occurrenceOf(one: Pick<DeliveredRun, 'scheduleId' | 'scheduledFor'>): string {
  return `${one.scheduleId}@${isoInstant(one.scheduledFor)}`;
}

interface Told {
  stats: Pick<DemoStats, 'lostRuns' | 'recoveredRuns'>;
  killedInstances: number;
  /** Everything had ended before the limit. */
  isDrained: boolean;
}

const WIDTH = 50;
const MOST_EXAMPLES = 5;

/** What the demo ends with. */
export function verdictLines(verdict: Verdict, { stats, killedInstances, isDrained }: Told): string[] {
  const { due, delivered, repeatedAfterDeath, faults } = verdict;
  const row = (text: string, count: number) => `  ${text.padEnd(WIDTH)}${count.toLocaleString('en').padStart(8)}`;
  return [
    'The verdict',
    row('due, by the rules of the schedules', due),
    row('delivered', delivered),
    row('missing', faults.missing.length),
    row('delivered again after the death of their sender', repeatedAfterDeath),
    row('delivered again for no reason', faults.repeated.length + faults.otherId.length),
    row('instances killed with -9', killedInstances),
    row('runs that were lost with them', stats.lostRuns),
    row('recovered', stats.recoveredRuns),
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
