import { isDeepStrictEqual } from 'node:util';
import { type Installation, type InstallationState, type KnownState, WORKS } from '../core/installation.ts';
import type { Clock, DatabaseClock } from './clock.ts';
import type { EventBus } from './event-bus.ts';

/** What this instance knows of what its installation does. The database decides; heartbeats and looks tell each instance. */
export interface InstallationWatch {
  current(): KnownState;
  /** Nothing may be handed off. */
  holdsRuns(): boolean;
  /** While it does, it holds no lease, so nothing that it knows can make it send anything. */
  observes(): boolean;
  /** Sets what was found; `isReadOnly`: the database accepts no writes. */
  learn(found: Installation, isReadOnly?: boolean): void;
  /** Called after it has changed. */
  onChange(listener: () => void): void;
  /** For how long the database has not answered, in ms. */
  silentMs(): number;
}

/** `isSet`: FIRELOCK_OBSERVE is. */
export function createInstallationWatch(
  { events, clock, databaseClock }: { events: EventBus; clock: Clock; databaseClock: DatabaseClock },
  isSet: boolean,
): InstallationWatch {
  const listeners: (() => void)[] = [];
  let known = isSet ? bySetting(WORKS, false) : byDatabase(WORKS, false);
  let seen: Installation | null = null;
  let learnedAt = -Infinity;

  function current(): KnownState {
    // Its end need not wait for the next heartbeat.
    const isOver = known.until !== null && known.until <= databaseClock.now();
    return isOver ? byDatabase(WORKS, known.isReadOnly) : known;
  }

  return {
    current,
    holdsRuns: () => ['holds', 'observes'].includes(current().mode),
    observes: () => current().mode === 'observes',
    learn: (found, isReadOnly = false) => {
      const before = { known, seen };
      learnedAt = clock.monotonic();
      seen = found;
      known = isSet ? bySetting(found, isReadOnly) : byDatabase(found, isReadOnly);
      const { tookOver } = found;
      if (!isDeepStrictEqual(known, before.known) || (isSet && !before.seen)) {
        events.emit({ type: 'installationChanged', state: known });
        for (const listener of listeners) listener();
      }
      if (tookOver && before.seen && !isDeepStrictEqual(tookOver, before.seen.tookOver))
        events.emit({ type: 'tookOver', tookOver, observesOn: isSet });
    },
    onChange: (listener) => void listeners.push(listener),
    silentMs: () => clock.monotonic() - learnedAt,
  };
}

function byDatabase({ mode, since, until, reason }: InstallationState, isReadOnly: boolean): KnownState {
  return { mode, since, until, reason, because: 'database', isReadOnly };
}

function bySetting(found: InstallationState, isReadOnly: boolean): KnownState {
  const said = found.mode === 'observes' ? found : WORKS;
  return { ...byDatabase(said, isReadOnly), mode: 'observes', because: 'setting' };
}
