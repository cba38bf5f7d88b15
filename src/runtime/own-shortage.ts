import { closeSync, openSync, readFileSync } from 'node:fs';
import { devNull, networkInterfaces } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { OWN_SHORTAGES } from '../core/own-resources.ts';
import type { Clock } from './clock.ts';
import type { EventBus } from './event-bus.ts';

/** Whether this instance can send, or lacks what a connection takes: then it leaves all runs to others. */
export interface OwnShortage {
  /**
   * How many claims it may have: none while it lacks something, then one, then twice as many with each run that is sent; at last any
   * number.
   */
  mostClaims(): number;
  /** Something was not done for want of it. */
  met(code: string): void;
}

const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;
/** From so many on, it is as before. */
const ENOUGH_CLAIMS = 256;
/** A connection takes one, and its name and its logging in some more. */
const DESCRIPTORS_TO_GO_ON = 8;

/** Learns from what could not be sent, and from the database. */
export function createOwnShortage(events: EventBus, clock: Pick<Clock, 'monotonic'>): OwnShortage {
  const shortage = new KnownShortage(events, clock);
  events.subscribe((event) => {
    if (event.type === 'databaseFailed') {
      const code = ownShortageOf(event.error);
      if (code !== null) shortage.met(code);
    } else if (event.type === 'attemptEnded') {
      const { result } = event;
      if (result.kind !== 'transient') shortage.sent();
      else if (result.shortage !== undefined) shortage.met(result.shortage);
      else if (!result.senderStopped) shortage.sent();
    }
  });
  return shortage;
}

class KnownShortage implements OwnShortage {
  readonly #events: EventBus;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Null: it lacks nothing. */
  #code: string | null = null;
  #restMs = FIRST_REST_MS / 2;
  #restsUntil = 0;
  #most = Infinity;

  constructor(events: EventBus, clock: Pick<Clock, 'monotonic'>) {
    this.#events = events;
    this.#clock = clock;
  }

  mostClaims(): number {
    this.#lookAgain();
    return this.#most;
  }

  met(code: string): void {
    // Others that were begun at the same time say nothing new.
    if (this.#code !== null) return;
    this.#restMs = Math.min(2 * this.#restMs, LONGEST_REST_MS);
    this.#restsUntil = this.#clock.monotonic() + this.#restMs;
    this.#code = code;
    this.#most = 0;
    this.#events.emit({ type: 'resourcesLacked', code });
  }

  sent(): void {
    if (this.#code !== null || this.#most === Infinity) return;
    this.#most *= 2;
    if (this.#most < ENOUGH_CLAIMS) return;
    this.#most = Infinity;
    this.#restMs = FIRST_REST_MS / 2;
  }

  #lookAgain(): void {
    const now = this.#clock.monotonic();
    if (this.#code === null || now < this.#restsUntil) return;
    if (DESCRIPTORS.has(this.#code) && lackedDescriptor() !== null) {
      this.#restsUntil = now + this.#restMs;
      return;
    }
    this.#code = null;
    this.#most = 1;
    this.#events.emit({ type: 'resourcesBack' });
  }
}

/** The code of what this instance lacked, where that is the only reason of an error; null: it lacked nothing. */
export function ownShortageOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if (error instanceof AggregateError) {
    const codes = error.errors.map(ownShortageOf);
    return codes.every((code) => code !== null) ? (codes[0] ?? null) : null;
  }
  const { errno, code = '', address } = error as NodeJS.ErrnoException & { address?: string };
  // Libraries write codes of their own beside the number.
  const name = typeof errno === 'number' && errno < 0 ? getSystemErrorName(errno) : code;
  if (name === 'EADDRNOTAVAIL' && !hasFamilyOf(address)) return null;
  if (OWN_SHORTAGES.has(name)) return name;
  // A look-up without a descriptor ends as if no name server answered.
  return name === 'EAI_AGAIN' ? lackedDescriptor() : ownShortageOf(error.cause);
}

const DESCRIPTORS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

function lackedDescriptor(): string | null {
  const open: number[] = [];
  try {
    while (open.length < DESCRIPTORS_TO_GO_ON) open.push(openSync(devNull, 'r'));
    return null;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return DESCRIPTORS.has(code) ? code : null;
  } finally {
    for (const descriptor of open) closeSync(descriptor);
  }
}

/** Without an address of its own of that family, a machine can reach none: that is a fault of who asks for it. */
function hasFamilyOf(address: string | undefined): boolean {
  if (address?.includes(':') !== true) return true;
  const isInternal = address === '::1';
  return Object.values(networkInterfaces()).some((all) =>
    all?.some((one) => one.family === 'IPv6' && one.internal === isInternal),
  );
}

/** How many descriptors this process may have; null: the platform does not say. Node has raised it as far as it may. */
export function descriptorLimit(): number | null {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}
