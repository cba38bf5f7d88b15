import { expect, it } from 'vitest';
import type { AlertKind } from '../../../src/core/alerts/alert.ts';
import { type Cause, type Known, type OpenEpisode, alertChanges } from '../../../src/core/alerts/episode.ts';
import { type Random, createRandom } from '../../chaos/random.ts';

const LATE_AFTER = 20;

/** A schedule as it is, and what firelock has made of it so far. */
class World {
  readonly #random: Random;
  now = 100;
  isEnabled = true;
  #byFirelock = false;
  #resumedAt = 100;
  #failures: number[] = [];
  #successes: number[] = [];
  /** As far as anyone has looked. */
  #seenSuccess = 0;
  #effects: Cause[] = [];
  open = new Map<AlertKind, OpenEpisode>();
  #over = new Map<AlertKind, { id: string; until: number }>();
  /** What was told, by kind. */
  readonly told: Record<string, string[]> = {};

  constructor(seed: number) {
    this.#random = createRandom(seed, 'episodes');
  }

  step(): void {
    this.now += 1 + Math.floor(this.#random.next() * 8);
    this.#random.pick([
      () => this.#fail(),
      () => this.#succeed(),
      () => this.#succeedLate(),
      () => this.#pause(),
      () => this.#resume(),
      () => this.#apply(),
      () => this.#apply(),
      () => this.#crash(),
      () => this.#look(),
    ])();
  }

  /** All that is left to be done is done. */
  finish(): void {
    while (this.#effects.length > 0) this.#apply();
    this.#look();
  }

  /** What holds, whatever has been seen of it. */
  get states(): AlertKind[] {
    if (!this.isEnabled && !this.#byFirelock) return [];
    const failed = Math.max(0, ...this.#failures);
    const fails = failed > Math.max(this.#resumedAt, ...this.#successes);
    return [
      ...(fails ? ['failed' as const] : []),
      ...(this.#lateSince() === null ? [] : ['late' as const]),
      ...(this.isEnabled ? [] : ['paused' as const]),
    ];
  }

  #fail(): void {
    this.#failures.push(this.now);
    this.#effects.push(causeOf('breaks', 'failed', this.now));
  }

  #succeed(at = this.now): void {
    this.#successes.push(at);
    for (const kind of ['failed', 'late'] as const)
      if (this.open.has(kind)) this.#effects.push(causeOf('heals', kind, at));
  }

  /** It ended a while ago, and is only written now. */
  #succeedLate(): void {
    this.#succeed(this.now - Math.floor(this.#random.next() * 10) - 0.5);
  }

  #pause(): void {
    if (!this.isEnabled) return;
    this.isEnabled = false;
    this.#byFirelock = this.#random.next() < 0.5;
    if (this.#byFirelock) this.#effects.push(causeOf('breaks', 'paused', this.now));
    else for (const kind of this.open.keys()) this.#close(kind);
  }

  #resume(): void {
    if (this.isEnabled) return;
    if (!this.#byFirelock) this.#resumedAt = this.now;
    this.isEnabled = true;
    this.#look();
  }

  #apply(): void {
    const some = this.#effects.filter(() => this.#random.next() < 0.6);
    this.#judge(some);
    this.#effects = this.#effects.filter((one) => !some.includes(one));
  }

  /** Its transaction was rolled back. */
  #crash(): void {
    alertChanges(this.#known(), this.#effects, this.now);
  }

  #look(): void {
    this.#judge([]);
  }

  #lateSince(): number | null {
    const deadline = Math.max(this.#resumedAt, ...this.#successes) + LATE_AFTER;
    return this.isEnabled && this.now >= deadline ? deadline : null;
  }

  #known(): Known {
    const success = Math.max(0, ...this.#successes);
    const wellAt = new Map<AlertKind, number>([['failed', success]]);
    if (success > this.#seenSuccess) wellAt.set('late', success);
    return {
      ...{ isEnabled: this.isEnabled, isPausedByFirelock: !this.isEnabled && this.#byFirelock },
      ...{
        resumedAt: this.#resumedAt,
        isOver: false,
        lastFireAt: null,
        error: null,
        expect: null,
        calendar: null,
      },
      ...{ lateSince: this.#lateSince(), wellAt, open: this.open, over: this.#over },
    };
  }

  #judge(causes: readonly Cause[]): void {
    const { opened, brokenAgain, closed } = alertChanges(this.#known(), causes, this.now);
    for (const { kind } of closed) this.#close(kind);
    for (const { cause, brokenAt, failures, again } of opened) {
      // Where it is over and open again at once, nothing has changed for those who were told.
      if (!this.open.has(cause.alertKind)) this.#tell(cause.alertKind, 'opened');
      else expect(again).toBe(cause.alertKind);
      expect(again !== null).toBe(this.open.has(cause.alertKind) || this.#over.has(cause.alertKind));
      this.open.set(cause.alertKind, { id: cause.alertKind, brokenAt, failures });
    }
    for (const { kind, ...one } of brokenAgain) this.open.set(kind, one);
    this.#seenSuccess = Math.max(this.#seenSuccess, ...this.#successes);
  }

  #close(kind: AlertKind): void {
    this.open.delete(kind);
    this.#over.set(kind, { id: kind, until: this.now });
    this.#tell(kind, 'recovered');
  }

  #tell(kind: AlertKind, event: string): void {
    (this.told[kind] ??= []).push(event);
  }
}

function causeOf(kind: Cause['kind'], alertKind: AlertKind, at: number): Cause {
  return { kind, alertKind, at, runId: null, count: 0 };
}

it('for random orders of what breaks, heals, is edited, applied and lost, an episode is open exactly if its state holds', () => {
  const seen = new Set<AlertKind>();
  for (let seed = 1; seed <= 5_000; seed += 1) {
    const world = new World(seed);
    for (let step = 0; step < 25; step += 1) world.step();
    world.finish();
    expect([...world.open.keys()].sort(), `seed ${seed}`).toEqual(world.states.sort());
    for (const [kind, events] of Object.entries(world.told)) {
      // Each change is told, and nothing but changes: first that it opened, last how it stands.
      expect(events, `seed ${seed}`).toEqual(events.map((_, index) => (index % 2 === 0 ? 'opened' : 'recovered')));
      expect(events.length % 2 === 1).toBe(world.open.has(kind as AlertKind));
      seen.add(kind as AlertKind);
    }
  }
  expect([...seen].sort()).toEqual(['failed', 'late', 'paused']);
});
