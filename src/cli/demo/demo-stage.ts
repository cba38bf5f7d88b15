import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../runtime/clock.ts';
import type { Instant } from '../../core/instant.ts';
import { DemoInstances } from './demo-instances.ts';
import type { DemoOptions } from './demo.ts';
import { type DeliveredRun, type DemoReceiver, startReceiver } from './demo-receiver.ts';
import { type DemoSchedule, makeSchedules } from './schedule-mix.ts';

/** firelock's own count of all runs. */
export interface DemoStats {
  totalRuns: number;
  openRuns: number;
  failedRuns: number;
  unknownRuns: number;
  abandonedRuns: number;
  cancelledRuns: number;
  lostRuns: number;
  recoveredRuns: number;
}

interface Given {
  databaseUrl: string;
  clock: Clock;
  /** Aborted once the demo is to end early. */
  signal: AbortSignal;
}

const LOOK_MS = 50;
const ASK_EVERY_MS = 500;
const TELL_EVERY_MS = 5_000;

/** Everything that takes part, and the time as it goes on. */
export class DemoStage {
  readonly options: DemoOptions;
  readonly clock: Clock;
  readonly schedules: readonly DemoSchedule[];
  readonly deliveries: DeliveredRun[] = [];
  readonly instances: DemoInstances;
  /** When schedules fire: from `from` on, and before `to`. Null: they do not exist yet. */
  times: { from: Instant; to: Instant } | null = null;
  /** As it was last answered. */
  stats: DemoStats | null = null;
  readonly #signal: AbortSignal;
  #receiver: DemoReceiver | null = null;
  #askedAt = -Infinity;
  #toldAt = -Infinity;

  constructor(options: DemoOptions, { databaseUrl, clock, signal }: Given) {
    this.options = options;
    this.clock = clock;
    this.#signal = signal;
    this.schedules = makeSchedules(options.schedules);
    this.instances = new DemoInstances(databaseUrl, clock);
  }

  /** Of the receiver, which is started by the first call. */
  async receiverUrl(): Promise<string> {
    this.#receiver ??= await startReceiver(this.clock, this.deliveries);
    return this.#receiver.url;
  }

  say(text: string): void {
    const { from } = this.times ?? { from: Infinity };
    const seconds = Math.max(0, Math.floor((this.clock.now() - from) / 1000));
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    process.stdout.write(`${time}  ${text}\n`);
  }

  /** @throws where the demo is to end early, or cannot go on */
  async wait(ms: number): Promise<void> {
    const end = this.clock.monotonic() + ms;
    for (;;) {
      await this.#look();
      if (this.instances.fault !== null) throw new Error(this.instances.fault);
      const left = end - this.clock.monotonic();
      await sleep(Math.max(0, Math.min(left, LOOK_MS)), undefined, { signal: this.#signal });
      if (left <= 0) return;
    }
  }

  /** Whether it came true within the limit. @throws as wait does */
  async until(isTrue: () => boolean, limitMs: number): Promise<boolean> {
    const limit = this.clock.monotonic() + limitMs;
    while (!isTrue()) {
      if (this.clock.monotonic() >= limit) return false;
      await this.wait(LOOK_MS);
    }
    return true;
  }

  /** Afterwards no process of it is left. */
  async close(): Promise<void> {
    await this.instances.end();
    this.#receiver?.close();
  }

  /** Asks how it is going, from time to time, and tells of it. */
  async #look(): Promise<void> {
    const now = this.clock.monotonic();
    if (now - this.#askedAt < ASK_EVERY_MS) return;
    this.#askedAt = now;
    await this.instances.look();
    if (this.times === null) return;
    // Of those that answer: all may be busy starting.
    this.stats = await this.readStats().catch(() => this.stats);
    if (now - this.#toldAt < TELL_EVERY_MS || this.stats === null || this.clock.now() < this.times.from)
      return;
    this.#toldAt = now;
    const { openRuns, lostRuns, recoveredRuns } = this.stats;
    const runs = `${this.deliveries.length} delivered, ${openRuns} open, ${lostRuns} lost, ${recoveredRuns} recovered`;
    this.say(`${this.instances.ready.length} of ${this.instances.all.length} instances ready; runs: ${runs}`);
  }

  async readStats(): Promise<DemoStats> {
    return (await this.instances.call('GET', 'stats')) as DemoStats;
  }
}
