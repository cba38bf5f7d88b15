import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../runtime/clock.ts';
import { isoInstant } from '../../core/instant.ts';
import { type DemoInstance, DemoInstances, startReceiver } from './demo-instances.ts';
import {
  type DeliveredRun,
  type DemoSchedule,
  type DemoStats,
  type SentAttempt,
  type Times,
  batchItemOf,
  check,
  dueMoments,
  makeSchedules,
  verdictLines,
} from './verdict.ts';

export interface DemoOptions {
  seconds: number;
  schedules: number;
  killEvery: number;
}

interface StoryDeps {
  options: DemoOptions;
  databaseUrl: string;
  clock: Clock;
  /** Aborted once the demo is to end early. */
  signal: AbortSignal;
}

const LOOK_MS = 50;
const ASK_EVERY_MS = 500;
const TELL_EVERY_MS = 5_000;
/** For what hangs: a slow machine is done long before. */
const STARTED_WITHIN_MS = 120_000;
/** A dead instance is noticed within 12 s, a lost lease within 5; a run may be lost more than once. */
const DRAINED_WITHIN_MS = 60_000;
const BATCH = 1_000;
/**
 * At the beginning of a second most fires are due, and often one instance takes them all. It is killed when it has many of them; when
 * this time is up, the one that has most.
 */
const HAS_MANY_WITHIN_MS = 800;
const RESTARTED_AFTER_MS = 2_000;
const GONE_WITHIN_MS = 10_000;

/** The whole demo: everything that takes part, and the time as it goes on. */
export class DemoStory {
  readonly #deps: StoryDeps;
  readonly #schedules: readonly DemoSchedule[];
  readonly #instances: DemoInstances;
  readonly #deliveries: DeliveredRun[] = [];
  #receiver: { url: string; close: () => void } | null = null;
  /** When schedules fire; null: they do not exist yet. */
  #times: Times | null = null;
  #stats: DemoStats | null = null;
  #askedAt = -Infinity;
  #toldAt = -Infinity;

  constructor(deps: StoryDeps) {
    this.#deps = deps;
    this.#schedules = makeSchedules(deps.options.schedules);
    this.#instances = new DemoInstances(deps.databaseUrl, deps.clock);
  }

  /** Answers whether no fire was lost. @throws where the demo is to end early, or cannot go on */
  async play(): Promise<boolean> {
    await this.#startInstances();
    const times = await this.#createSchedules();
    await this.#killAgainAndAgain(times);
    await this.#wait(times.to - this.#deps.clock.now());
    const due = this.#schedules.reduce((sum, schedule) => sum + dueMoments(schedule, times).length, 0);
    const hasEnded = () => this.#stats?.openRuns === 0 && this.#stats.totalRuns >= due;
    const isDrained = await this.#until(hasEnded, DRAINED_WITHIN_MS);
    const stats = await this.#readStats();
    const verdict = check({
      ...{ ...times, stats, schedules: this.#schedules, deliveries: this.#deliveries },
      ...{ kills: this.#instances.killedIds, senders: await this.#senders() },
    });
    const killedInstances = this.#instances.all.reduce((sum, one) => sum + one.kills, 0);
    process.stdout.write(`\n${verdictLines(verdict, { stats, killedInstances, isDrained }).join('\n')}\n`);
    return verdict.ok;
  }

  say(text: string): void {
    const { from } = this.#times ?? { from: Infinity };
    const seconds = Math.max(0, Math.floor((this.#deps.clock.now() - from) / 1000));
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    process.stdout.write(`${time}  ${text}\n`);
  }

  /** Afterwards no process of it is left. */
  async close(): Promise<void> {
    await this.#instances.end();
    this.#receiver?.close();
  }

  async #startInstances(): Promise<void> {
    const { all } = this.#instances;
    for (const one of all) this.#instances.start(one);
    if (!(await this.#until(() => this.#instances.ready.length === all.length, STARTED_WITHIN_MS)))
      throw new Error('the instances did not become ready');
    for (const { number, process, url } of all) this.say(`instance ${number} is ready: pid ${process?.pid}, ${url}`);
  }

  async #createSchedules(): Promise<Times> {
    const schedules = this.#schedules;
    const { clock, options } = this.#deps;
    this.#receiver = await startReceiver(clock, this.#deliveries);
    // Enough for all to be there before the first is due, also where the machine stalls for some seconds.
    const from = Math.ceil((clock.now() + 5_000 + 5 * schedules.length) / 1000) * 1000;
    const times = { from, to: from + options.seconds * 1000 };
    for (let done = 0; done < schedules.length; done += BATCH) {
      const { url } = this.#receiver;
      const items = schedules.slice(done, done + BATCH).map((schedule) => batchItemOf(schedule, times, url));
      await this.#instances.call('POST', 'schedules/batch', { items });
    }
    if (clock.now() >= from)
      throw new Error(`${schedules.length} schedules take too long to create on this machine; try fewer`);
    this.#times = times;
    this.say(`${schedules.length} schedules fire from ${isoInstant(from)} on, for ${options.seconds} s`);
    return times;
  }

  /** Kills one instance after the other with -9, every so many seconds while fires are due, and starts each again. */
  async #killAgainAndAgain({ from, to }: Times): Promise<void> {
    const everyMs = this.#deps.options.killEvery * 1000;
    for (let at = from + everyMs; at < to; at += everyMs) {
      await this.#wait(at - this.#deps.clock.now());
      const victim = await this.#victim();
      // Of the others one at least is to go on; a slow machine is given time until the next turn.
      if (victim !== null) await this.#killAndRestart(victim);
    }
  }

  async #victim(): Promise<DemoInstance | null> {
    const limit = this.#deps.clock.monotonic() + HAS_MANY_WITHIN_MS;
    for (;;) {
      await this.#wait(0);
      const claimed = await this.#claims();
      const { ready } = this.#instances;
      if (ready.length < 2) return null;
      // Where none has more than another they take turns.
      const inTurn = ready.sort((one, other) => one.kills - other.kills);
      const most = inTurn.reduce((one, other) => (claimed(other) > claimed(one) ? other : one));
      const hasMany = claimed(most) >= this.#schedules.length / 8;
      if (hasMany || this.#deps.clock.monotonic() >= limit) return most;
    }
  }

  /** How many runs an instance has claimed and not settled, also a dead one. */
  async #claims(): Promise<(instance: DemoInstance) => number> {
    const answer = await this.#instances.call('GET', 'instances').catch(() => ({ items: [] }));
    const { items } = answer as { items: { id: string; inFlight: number }[] };
    const byId = new Map(items.map(({ id, inFlight }) => [id, inFlight]));
    return ({ ids }) => byId.get(ids.at(-1) ?? '') ?? 0;
  }

  async #killAndRestart(instance: DemoInstance): Promise<void> {
    const who = `instance ${instance.number} (pid ${instance.process?.pid})`;
    const kill = this.#instances.kill(instance);
    if (!(await this.#until(() => kill.to !== Infinity, GONE_WITHIN_MS)))
      throw new Error(`${who} was killed with -9, but its process did not end`);
    const count = (await this.#claims())(instance);
    this.say(`kill -9 of ${who}, which held ${count} ${count === 1 ? 'run' : 'runs'}`);
    await this.#wait(RESTARTED_AFTER_MS);
    this.#instances.start(instance);
  }

  /** Who made which attempt of the runs that came more than once. */
  async #senders(): Promise<Map<string, SentAttempt[]>> {
    const senders = new Map<string, SentAttempt[]>();
    for (const [runId, { length }] of Map.groupBy(this.#deliveries, (delivery) => delivery.runId)) {
      if (length === 1) continue;
      const run = (await this.#instances.call('GET', `runs/${runId}`)) as { attemptLog: SentAttempt[] };
      senders.set(runId, run.attemptLog);
    }
    return senders;
  }

  async #readStats(): Promise<DemoStats> {
    return (await this.#instances.call('GET', 'stats')) as DemoStats;
  }

  /** @throws as `play` does */
  async #wait(ms: number): Promise<void> {
    const end = this.#deps.clock.monotonic() + ms;
    for (;;) {
      await this.#look();
      if (this.#instances.fault !== null) throw new Error(this.#instances.fault);
      const left = end - this.#deps.clock.monotonic();
      await sleep(Math.max(0, Math.min(left, LOOK_MS)), undefined, { signal: this.#deps.signal });
      if (left <= 0) return;
    }
  }

  /** Whether it came true within the limit. @throws as `play` does */
  async #until(isTrue: () => boolean, limitMs: number): Promise<boolean> {
    const limit = this.#deps.clock.monotonic() + limitMs;
    while (!isTrue()) {
      if (this.#deps.clock.monotonic() >= limit) return false;
      await this.#wait(LOOK_MS);
    }
    return true;
  }

  /** Asks how it is going, from time to time, and tells of it. */
  async #look(): Promise<void> {
    const now = this.#deps.clock.monotonic();
    if (now - this.#askedAt < ASK_EVERY_MS) return;
    this.#askedAt = now;
    await this.#instances.look();
    if (this.#times === null) return;
    // Of those that answer: all may be busy starting.
    this.#stats = await this.#readStats().catch(() => this.#stats);
    const isTime = now - this.#toldAt >= TELL_EVERY_MS && this.#deps.clock.now() >= this.#times.from;
    if (!isTime || this.#stats === null) return;
    this.#toldAt = now;
    const { openRuns, lostRuns, recoveredRuns } = this.#stats;
    const runs = `${this.#deliveries.length} delivered, ${openRuns} open, ${lostRuns} lost, ${recoveredRuns} recovered`;
    this.say(`${this.#instances.ready.length} of ${this.#instances.all.length} instances ready; runs: ${runs}`);
  }
}
