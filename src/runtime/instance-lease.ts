import { randomUUID } from 'node:crypto';
import { type Moment, isLeaseValid } from '../core/time/lease.ts';
import type { Clock } from './clock.ts';

/**
 * The identity of this process among the others, and whether its lease is valid. The id is new at each process start,
 * never a host name. A new id replaces it once the others have declared it dead.
 */
export interface Lease {
  /** The id under which it locks and claims now. */
  readonly instanceId: string;
  readonly ttlSeconds: number;
  /** False: nothing may be sent until a heartbeat is answered again. */
  isValid(): boolean;
  /** Call it before a heartbeat is sent, and keep the result. */
  moment(): Moment;
  /** A heartbeat that was sent at that moment was answered: the instance is listed as living. */
  renew(sent: Moment): void;
  /** The instance was declared dead: claims under its old id no longer belong to it. */
  replace(): void;
  /** Called after each renewal and replacement. */
  onChange(listener: () => void): void;
}

export function createLease(clock: Clock, ttlSeconds: number): Lease {
  const listeners: (() => void)[] = [];
  let instanceId: string = randomUUID();
  let heartbeatSent: Moment | null = null;

  const moment = (): Moment => ({ monotonic: clock.monotonic(), wall: clock.now() });
  const notify = (): void => {
    for (const listener of listeners) listener();
  };

  return {
    get instanceId() {
      return instanceId;
    },
    ttlSeconds,
    isValid: () => isLeaseValid(heartbeatSent, moment(), ttlSeconds),
    moment,
    renew: (sent) => {
      heartbeatSent = sent;
      notify();
    },
    replace: () => {
      instanceId = randomUUID();
      heartbeatSent = null;
      notify();
    },
    onChange: (listener) => void listeners.push(listener),
  };
}
