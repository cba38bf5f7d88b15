import { isoInstant } from '../core/instant.ts';
import { OWN_SHORTAGES } from '../core/own-resources.ts';
import type { KnownState } from '../core/installation.ts';
import type { Lease } from './instance-lease.ts';
import type { InstanceState, Trouble } from './instance-state.ts';
import type { Turning } from './loop/loop.ts';
import type { InstallationWatch } from './installation-watch.ts';
import { LOOP_LIMIT_MS, warningsOf } from './readiness-warnings.ts';

/** An instance's answer at /readyz: `ready` if every check is `ok`; warnings do not change that. */
export interface Readiness {
  status: 'ready' | 'unavailable';
  checks: Record<string, string>;
  warnings: string[];
}

export function readinessOf(
  state: InstanceState,
  lease: Lease,
  loops: readonly Turning[],
  installation: InstallationWatch,
): Readiness {
  const { migrated, stopping } = state;
  const known = installation.current();
  const [trouble] = state.troubles();
  const checks = {
    migrations: migrated ? 'ok' : 'the database has not been reached yet, or its schema is not up to date',
    ...(known.mode === 'observes'
      ? checkOfLooks(installation, trouble)
      : checksOfLease(state, lease, trouble)),
    loops: checkOfLoops(state, lease, loops),
    shutdown: stopping ? 'stopping' : 'ok',
  };
  const warnings = [
    ...(known.mode === 'works' ? [] : [installationWarning(known)]),
    ...warningsOf(loops, state),
  ];
  const ready = Object.values(checks).every((check) => check === 'ok');
  return { status: ready ? 'ready' : 'unavailable', checks, warnings };
}

const OUT_OF_REACH_OR_SLOW = 'the database is out of reach or slow';

/** An observer sends no heartbeats, and needs no lease for what it does. */
function checkOfLooks(installation: InstallationWatch, trouble: Trouble | undefined) {
  const isInReach = installation.silentMs() <= LOOP_LIMIT_MS;
  const why = trouble?.words ?? OUT_OF_REACH_OR_SLOW;
  return {
    database: isInReach ? 'ok' : `no look at the database was answered lately: ${why}`,
  };
}

function checksOfLease(state: InstanceState, lease: Lease, trouble: Trouble | undefined) {
  const why = trouble?.words ?? OUT_OF_REACH_OR_SLOW;
  const { shortage } = state;
  const without = withoutConnection(state, lease);
  return {
    // Known from the heartbeats, which ask the database every few seconds anyway.
    database: !lease.isValid()
      ? `no heartbeat was answered lately: ${why}`
      : without.length > 0
        ? `there is no connection for ${without.join(', ')}: ${why}`
        : 'ok',
    lease: lease.isValid() ? 'ok' : 'the lease has expired: nothing is sent until a heartbeat is answered',
    resources:
      shortage === null
        ? 'ok'
        : `${OWN_SHORTAGES.get(shortage) ?? 'something is lacking'} (${shortage}): other instances send its runs`,
  };
}

function withoutConnection({ without, since }: InstanceState, lease: Lease): string[] {
  return [...without].filter(([, at]) => since(at) > ttlsMs(lease)).map(([purpose]) => purpose);
}

/** What fails for longer is a fault. */
function ttlsMs({ ttlSeconds }: Lease): number {
  return 2 * ttlSeconds * 1000;
}

/** While one of them fails, nothing fires. */
const FIRING = ['tick', 'dispatch'];

function checkOfLoops({ failures }: InstanceState, lease: Lease, loops: readonly Turning[]): string {
  const stuck = loops.filter((loop) => loop.inPassMs() > LOOP_LIMIT_MS).map((loop) => loop.name);
  const failing = loops.filter((loop) => FIRING.includes(loop.name) && loop.failingMs() > ttlsMs(lease));
  const faults = [
    ...(stuck.length === 0 ? [] : [`a pass takes too long: ${stuck.join(', ')}`]),
    ...failing.map(
      (loop) =>
        `the ${loop.name} loop has failed for ${Math.round(loop.failingMs() / 1000)} s, and nothing fires: ` +
        (failures.get(loop.name) ?? 'the log says why'),
    ),
  ];
  return faults.length === 0 ? 'ok' : faults.join('; ');
}

/** `/readyz` needs no token, so it does not say why: `GET /observing` and `GET /maintenance` do. */
function installationWarning({ mode, because, isReadOnly, since, until }: KnownState): string {
  if (mode === 'observes') {
    const why = because === 'setting' ? 'FIRELOCK_OBSERVE is set' : 'the database says so';
    const promote = isReadOnly ? '; the database is read only: promote it first' : '';
    return `this instance only observes (${why}): it plans nothing and sends nothing until \`firelock take-over\`${promote}`;
  }
  const begin = since === null ? '' : ` since ${isoInstant(since)}`;
  const end = until === null ? 'until it is ended' : `until ${isoInstant(until)}`;
  const handoffs = mode === 'holds' ? ', and no run is handed off' : '';
  return `maintenance${begin}, ${end}: no schedule is planned${handoffs}`;
}
