import { isoInstant } from '../core/instant.ts';
import { OWN_SHORTAGES } from '../core/own-resources.ts';
import type { KnownState } from '../core/installation.ts';
import type { Lease } from './instance-lease.ts';
import type { InstanceState, Trouble } from './instance-state.ts';
import type { Turning } from './loop/loop.ts';
import type { InstallationWatch } from './installation-watch.ts';

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
    ...(known.mode === 'observes' ? checkOfLooks(installation, trouble) : checksOfLease(state, lease, trouble)),
    loops: checkOfLoops(state, lease, loops),
    shutdown: stopping ? 'stopping' : 'ok',
  };
  const warnings = [...(known.mode === 'works' ? [] : [installationWarning(known)]), ...warningsOf(loops, state)];
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

/** A pass that takes longer is a fault of `/readyz`, and a loop that fails for longer a warning. */
const LOOP_LIMIT_MS = 30_000;

/** Usually it is done at once. */
const MAX_EFFECT_SECONDS = 60;

/** What an operator should know, and what does not stop the work. */
function warningsOf(loops: readonly Turning[], state: InstanceState): string[] {
  const { strandedRuns, effectsFailing, zoneData, missingKeys, missedLately } = state;
  const warnings = [...troublesOf(state), ...failingOf(loops), ...setAsideOf(state)];
  if (strandedRuns > 0) {
    warnings.push(
      `${strandedRuns} runs are claimed by an instance that is silent; other instances take them over once it is declared dead`,
    );
  }
  if (effectsFailing > 0) {
    warnings.push(
      `${effectsFailing} effects of ended runs failed and will be retried; the log names the runs and says why`,
    );
  }
  if (state.oldestEffectSeconds > MAX_EFFECT_SECONDS) {
    warnings.push(
      `effects of ended runs are late: the oldest has waited for ${Math.round(state.oldestEffectSeconds)} s`,
    );
  }
  warnings.push(...ofSchedules(state));
  const missed = missedLately();
  if (missed > 0) {
    warnings.push(
      `${missed} fires were missed in the last ten minutes; the log names the schedules, and their occurrences say what became of each fire`,
    );
  }
  warnings.push(...untoldOf(state));
  if (zoneData.length > 1) warnings.push(mixedZoneData(zoneData));
  if (missingKeys.length > 0) {
    warnings.push(
      `schedules or connections have secrets that are encrypted with keys missing in FIRELOCK_SECRET_KEYS (${missingKeys.length}): ` +
        'their targets cannot be called; the log names the keys',
    );
  }
  return warnings;
}

/** Of calls of the API as well: the loops may find nothing to write. */
function troublesOf({ troubles }: InstanceState): string[] {
  return troubles()
    .filter(({ lasts }) => lasts)
    .map(({ words }) => `${words}: work failed in the last minute, and the log has the reason`);
}

function ofSchedules(state: InstanceState): string[] {
  const { schedulesLate, schedulesAhead, schedulesNotInFile, calendarsEnding } = state;
  const late = `${schedulesLate} schedules are late: no run has succeeded in time; GET /api/v1/schedules?late=true names them`;
  const ending = `${calendarsEnding} calendars that schedules exclude end within 90 days, or have ended (validUntil): add days, and move it on; GET /api/v1/alerts?open=true names the schedules`;
  const ahead = `${schedulesAhead} schedules were planned while the clock of the database was ahead, and are silent until it comes there again; \`firelock resume --from-now\` sets them back`;
  const extra = `${schedulesNotInFile} schedules of the set of FIRELOCK_SCHEDULES_FILE were not in the file at the start of this instance, and go on; the log names them`;
  return [
    ...(schedulesLate > 0 ? [late] : []),
    ...(calendarsEnding > 0 ? [ending] : []),
    ...(schedulesAhead > 0 ? [ahead] : []),
    ...(schedulesNotInFile > 0 ? [extra] : []),
  ];
}

function failingOf(loops: readonly Turning[]): string[] {
  return loops
    .filter((loop) => loop.failingMs() > LOOP_LIMIT_MS)
    .map((loop) => `the ${loop.name} loop has failed for ${Math.round(loop.failingMs() / 1000)} s; the log says why`);
}

function setAsideOf({ rowsSetAside }: InstanceState): string[] {
  return [...rowsSetAside]
    .filter(([, count]) => count > 0)
    .map(
      ([loop, count]) =>
        `the ${loop} loop could not write ${count} rows, and tries them again later; the log names them`,
    );
}

function untoldOf({ notifiers: { undelivered, waiting } }: InstanceState): string[] {
  const counted = ({ length }: readonly string[], rest: string) =>
    length === 0 ? [] : [`notifiers ${rest}: ${length}`];
  return [
    ...counted(undelivered, 'whose last message was not delivered; the log says why'),
    ...counted(waiting, 'of which a message has waited for longer than five minutes'),
  ];
}

/** The consequence if living instances differ in their time zone data. */
function mixedZoneData(versions: readonly string[]): string {
  return (
    `living instances have different time zone data (${versions.join(', ')}) and may plan fires at different times in ` +
    'zones whose rules differ; finish the rollout'
  );
}
