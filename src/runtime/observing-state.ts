import { isDeepStrictEqual } from 'node:util';
import type { Installation, Observing } from '../core/observing.ts';
import type { Clock } from './clock.ts';
import type { EventBus } from './event-bus.ts';

/** Whether this instance observes. While it does, it holds no lease, so nothing that it knows can make it send anything. */
export interface ObservingState {
  /** Null: it works, or will once it is registered. */
  current(): Observing | null;
  /** Sets what a look at the database found; `isReadOnly`: it accepts no writes. */
  saw(found: Installation, isReadOnly: boolean): void;
  /** For how long the database has not answered a look, in ms. */
  silentMs(): number;
}

/** `isSet`: FIRELOCK_OBSERVE is. */
export function createObservingState(
  events: EventBus,
  clock: Pick<Clock, 'monotonic'>,
  isSet: boolean,
): ObservingState {
  let known: Observing | null = isSet
    ? { because: 'setting', since: null, reason: null, isReadOnly: false }
    : null;
  let seen: Installation | null = null;
  let lookedAt = -Infinity;
  return {
    current: () => known,
    saw: (found, isReadOnly) => {
      const before = { known, seen };
      lookedAt = clock.monotonic();
      seen = found;
      const { observingSince: since, reason, tookOver } = found;
      known =
        isSet || since !== null
          ? { because: isSet ? 'setting' : 'database', since, reason, isReadOnly }
          : null;
      if (known && !(before.seen && isDeepStrictEqual(known, before.known)))
        events.emit({ type: 'observes', observing: known });
      if (tookOver && before.seen && !isDeepStrictEqual(tookOver, before.seen.tookOver))
        events.emit({ type: 'tookOver', tookOver, observesOn: isSet });
    },
    silentMs: () => clock.monotonic() - lookedAt,
  };
}
