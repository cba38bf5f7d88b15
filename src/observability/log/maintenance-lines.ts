import { isoInstant } from '../../core/instant.ts';
import type { Maintenance, MaintenanceDispatch } from '../../core/maintenance.ts';
import type { Lines } from '../handlers.ts';

/** Each instance logs what it learns about maintenance. */
export const MAINTENANCE_LINES = {
  maintenanceBegan: (logger, { maintenance }) =>
    logger.warn(fieldsOf(maintenance), `maintenance has begun: ${MEANING[maintenance.dispatch]}`),
  maintenanceChanged: (logger, { maintenance }) =>
    logger.warn(fieldsOf(maintenance), `maintenance was changed: ${MEANING[maintenance.dispatch]}`),
  maintenanceEnded: (logger, { maintenance }) =>
    logger.warn(
      fieldsOf(maintenance),
      'maintenance has ended: what was due meanwhile is planned now, by the catchUp of each schedule',
    ),
  heldRunsReleased: (logger, { count }) =>
    logger.info({ count }, 'runs that edits recorded during maintenance go on'),
} satisfies Lines;

const MEANING: Record<MaintenanceDispatch, string> = {
  continue: 'no schedule is planned; recorded runs are handed off',
  hold: 'no schedule is planned, and no run is handed off',
};

function fieldsOf({ since, until, reason, dispatch }: Maintenance) {
  return { since: isoInstant(since), until: until === null ? null : isoInstant(until), reason, dispatch };
}
