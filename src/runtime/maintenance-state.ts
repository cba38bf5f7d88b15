import { type Maintenance, isSameMaintenance } from '../core/maintenance.ts';
import type { DatabaseClock } from './database-clock.ts';
import type { EventBus } from './event-bus.ts';

/** What this instance knows of maintenance. The database decides; the heartbeats tell each instance. */
export interface MaintenanceState {
  /** The maintenance in force, as far as is known; null: none. */
  current(): Maintenance | null;
  /** Nothing may be handed off. */
  holdsRuns(): boolean;
  /** Sets what a heartbeat found. */
  learn(found: Maintenance | null): void;
  /** Called after it has begun, changed or ended. */
  onChange(listener: () => void): void;
}

export function createMaintenanceState(events: EventBus, databaseClock: DatabaseClock): MaintenanceState {
  const listeners: (() => void)[] = [];
  let known: Maintenance | null = null;

  function current(): Maintenance | null {
    // Its end need not wait for the next heartbeat.
    const until = known?.until ?? Infinity;
    return until <= databaseClock.now() ? null : known;
  }

  return {
    current,
    holdsRuns: () => current()?.dispatch === 'hold',
    learn: (found) => {
      const before = known;
      if (before === found || (before && found && isSameMaintenance(before, found))) return;
      known = found;
      if (found)
        events.emit({ type: before ? 'maintenanceChanged' : 'maintenanceBegan', maintenance: found });
      else if (before) events.emit({ type: 'maintenanceEnded', maintenance: before });
      for (const listener of listeners) listener();
    },
    onChange: (listener) => void listeners.push(listener),
  };
}
