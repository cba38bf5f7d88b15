import type { Instant } from './instant.ts';

/** What happens to recorded runs during maintenance: they are handed off as always, or wait for its end. */
export const MAINTENANCE_DISPATCHES = ['continue', 'hold'] as const;
export type MaintenanceDispatch = (typeof MAINTENANCE_DISPATCHES)[number];

/** While it is in force, no instance plans. */
export interface Maintenance {
  since: Instant;
  /** The maintenance ends by itself at this moment; null: it lasts until a caller ends it. */
  until: Instant | null;
  reason: string | null;
  dispatch: MaintenanceDispatch;
}

export function isSameMaintenance(a: Maintenance, b: Maintenance): boolean {
  return a.since === b.since && a.until === b.until && a.reason === b.reason && a.dispatch === b.dispatch;
}
