import { isoInstant } from '../core/instant.ts';
import type { TroubledNotifiers } from '../core/alerts/alert-events.ts';
import type { Maintenance } from '../core/maintenance.ts';
import type { Observing } from '../core/observing.ts';
import type { Clock } from './clock.ts';
import type { EventBus } from './event-bus.ts';
import type { Lease } from './instance-lease.ts';
import type { Turning } from './loop/loop.ts';
import type { ObservingState } from './observing-state.ts';

/** An instance's answer at /readyz: `ready` if every check is `ok`; warnings do not change that. */
export interface Readiness {
  status: 'ready' | 'unavailable';
  checks: Record<string, string>;
  warnings: string[];
}

interface InstanceState {
  migrated: boolean;
  /** It has registered, and its services have started. */
  working: boolean;
  stopping: boolean;
  /** Claimed by an instance that is silent; as of the last sample. */
  strandedRuns: number;
  /** How many rows each loop leaves out for now, since it could not write them. */
  rowsSetAside: Map<string, number>;
  /** Effects of ends that have failed; as of the last sample. */
  effectsFailing: number;
  /** For how long the oldest effect has waited that has not failed; as of the last sample. */
  oldestEffectSeconds: number;
  /** Schedules without a success in time; as of the last sample. */
  schedulesLate: number;
  /** Versions of the time zone data that the living instances plan with; as of the last sample. */
  zoneData: readonly string[];
  /** Ids of keys that secrets of schedules need, and this instance does not have; as of the last sample. */
  missingKeys: readonly string[];
  /** Notifiers that tell nobody; as of the last sample. */
  notifiers: TroubledNotifiers;
  /** How many fires this instance has found missed in the last minutes. */
  missedLately: () => number;
}

const LATELY_MS = 10 * 60_000;

const UNSAMPLED = {
  strandedRuns: 0,
  effectsFailing: 0,
  oldestEffectSeconds: 0,
  schedulesLate: 0,
  zoneData: [],
  missingKeys: [],
  notifiers: { undelivered: [], waiting: [] },
};

/** What the instance knows about itself since its start. */
export function createInstanceState(events: EventBus, clock: Clock): InstanceState {
  const missed: { at: number; fires: number }[] = [];
  const missedLately = (): number => {
    const since = clock.monotonic() - LATELY_MS;
    while (missed[0] !== undefined && missed[0].at < since) missed.shift();
    return missed.reduce((sum, { fires }) => sum + fires, 0);
  };
  const state: InstanceState = {
    migrated: false,
    working: false,
    stopping: false,
    rowsSetAside: new Map(),
    ...UNSAMPLED,
    missedLately,
  };
  events.subscribe((event) => {
    if (event.type === 'firesMissed') {
      const { caughtUp, folded, skipped } = event;
      missedLately();
      missed.push({ at: clock.monotonic(), fires: caughtUp + folded + skipped });
    } else if (event.type === 'gaugesSampled') {
      state.strandedRuns = event.strandedRuns;
      state.effectsFailing = event.effectsFailing;
      state.oldestEffectSeconds = event.oldestEffectSeconds;
      state.schedulesLate = event.schedulesLate;
      state.zoneData = event.zoneData;
    } else if (event.type === 'rowsSetAside') {
      state.rowsSetAside.set(event.loop, event.count);
    } else if (event.type === 'secretKeysSampled') {
      state.missingKeys = event.missing;
    } else if (event.type === 'notifiersSampled') {
      state.notifiers = event.notifiers;
    }
  });
  return state;
}

/** The parts that must have finished a pass, or succeeded in one, within this time. */
const LOOP_LIMIT_MS = 30_000;

export function readinessOf(
  state: InstanceState,
  lease: Lease,
  loops: readonly Turning[],
  { maintenance, observing }: { maintenance: Maintenance | null; observing: ObservingState },
): Readiness {
  const { migrated, stopping } = state;
  const observes = observing.current();
  const stuck = loops.filter((loop) => loop.inPassMs() > LOOP_LIMIT_MS).map((loop) => loop.name);
  const checks = {
    migrations: migrated ? 'ok' : 'the database has not been reached yet, or its schema is not up to date',
    ...(observes ? checkOfLooks(observing) : checksOfLease(lease)),
    loops: stuck.length === 0 ? 'ok' : `a pass takes too long: ${stuck.join(', ')}`,
    shutdown: stopping ? 'stopping' : 'ok',
  };
  const warnings = [
    ...(observes ? [observingWarning(observes)] : []),
    ...(maintenance ? [maintenanceWarning(maintenance)] : []),
    ...warningsOf(loops, state),
  ];
  const ready = Object.values(checks).every((check) => check === 'ok');
  return { status: ready ? 'ready' : 'unavailable', checks, warnings };
}

/** An observer sends no heartbeats, and needs no lease for what it does. */
function checkOfLooks(observing: ObservingState) {
  const isInReach = observing.silentMs() <= LOOP_LIMIT_MS;
  return {
    database: isInReach ? 'ok' : 'no look at the database was answered lately: it is out of reach or slow',
  };
}

function checksOfLease(lease: Lease) {
  return {
    // Known from the heartbeats, which ask the database every few seconds anyway.
    database: lease.isValid()
      ? 'ok'
      : 'no heartbeat was answered lately: the database is out of reach or slow',
    lease: lease.isValid() ? 'ok' : 'the lease has expired: nothing is sent until a heartbeat is answered',
  };
}

/** Usually it is done at once. */
const MAX_EFFECT_SECONDS = 60;

function warningsOf(loops: readonly Turning[], state: InstanceState): string[] {
  const { strandedRuns, effectsFailing, schedulesLate, zoneData, missingKeys, missedLately } = state;
  const warnings = [...failingOf(loops), ...setAsideOf(state)];
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
  if (schedulesLate > 0) {
    warnings.push(
      `${schedulesLate} schedules are late: no run has succeeded in time; GET /api/v1/schedules?late=true names them`,
    );
  }
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
      `schedules or connections have secrets that are encrypted with keys missing in FIRELOCK_SECRET_KEYS (${missingKeys.join(', ')}): ` +
        'their targets cannot be called',
    );
  }
  return warnings;
}

function failingOf(loops: readonly Turning[]): string[] {
  return loops
    .filter((loop) => loop.failingMs() > LOOP_LIMIT_MS)
    .map(
      (loop) =>
        `the ${loop.name} loop has failed for ${Math.round(loop.failingMs() / 1000)} s; the log says why`,
    );
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
  const named = (ids: readonly string[], rest: string) =>
    ids.length === 0 ? [] : [`${namesOf(ids)}: ${rest}`];
  return [
    ...named(undelivered, 'the last message of these notifiers was not delivered; the log says why'),
    ...named(waiting, 'a message of these notifiers has waited for longer than five minutes'),
  ];
}

const MAX_NAMED = 10;

function namesOf(ids: readonly string[]): string {
  const more = ids.length - MAX_NAMED;
  return ids.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** The consequence if living instances differ in their time zone data. */
function mixedZoneData(versions: readonly string[]): string {
  return (
    `living instances have different time zone data (${versions.join(', ')}) and may plan fires at different times in ` +
    'zones whose rules differ; finish the rollout'
  );
}

/** `/readyz` needs no token, so it does not say why: `GET /observing` does. */
function observingWarning({ because, isReadOnly }: Observing): string {
  const why = because === 'setting' ? 'FIRELOCK_OBSERVE is set' : 'the database says so';
  const promote = isReadOnly ? '; the database is read only: promote it first' : '';
  return `this instance only observes (${why}): it plans nothing and sends nothing until \`firelock take-over\`${promote}`;
}

/** `/readyz` needs no token, so it does not say why: `GET /maintenance` does. */
function maintenanceWarning({ since, until, dispatch }: Maintenance): string {
  const end = until === null ? 'until it is ended' : `until ${isoInstant(until)}`;
  const handoffs = dispatch === 'hold' ? ', and no run is handed off' : '';
  return `maintenance since ${isoInstant(since)}, ${end}: no schedule is planned${handoffs}`;
}
