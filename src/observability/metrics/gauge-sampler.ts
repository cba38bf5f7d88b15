import type { TroubledNotifiers } from '../../core/alerts/alert.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import type { Clock } from '../../runtime/clock.ts';
import { createLoop, type Loop } from '../../runtime/loop/loop.ts';
import type { LoopDeps } from '../../postgres/database.ts';
import type { Executor } from '../../postgres/executor.ts';
import {
  type Sample,
  countOpenRuns,
  countSchedules,
  countSchedulesAhead,
  sampleNotifiers,
  sampleWork,
} from '../../store/reports/gauges.ts';
import { sampleUsedKeys } from '../../store/secrets/secret-rows.ts';
import type { Metrics } from './metrics.ts';

interface GaugeSamplerDeps extends LoopDeps {
  metrics: Metrics;
  secrets: KeyRing;
  tickIntervalMs: number;
}

const SAMPLE_EVERY_MS = 10_000;
/**
 * Ms of rest for each ms of database time that a sample took: 0.2 % of a core, and as much again for each parallel
 * worker of the server, which is not visible here. Less rest only if a sample takes so long that OLDEST_SAMPLE_MS comes
 * first.
 */
const REST = 500;
/** The rest after a failed sample: as long as it may have cost, and the sample counts as late by then. */
const REST_AFTER_FAILURE = 10;
const OLDEST_SAMPLE_MS = 600_000;
/** There may be very many rows to count. */
const LIMIT_MS = 30_000;

interface Part {
  /** Monotonic. */
  dueAt: number;
  /** Answers what the sample cost, once its values were passed on. */
  take: () => Promise<number>;
}

/**
 * Samples the database now and then, so that a scrape never has to. Counts whose cost grows with the number of rows are
 * separate samples, and the more one costs, the more rarely it is taken.
 */
export function createGaugeSampler(deps: GaugeSamplerDeps): Loop {
  const { clock, events, metrics } = deps;
  const emitNotifiers = (notifiers: TroubledNotifiers) => events.emit({ type: 'notifiersSampled', notifiers });
  const parts = [
    workPart(deps),
    part(deps, countOpenRuns, metrics.openRunsCounted),
    part(deps, countSchedules, metrics.schedulesCounted),
    part(deps, countSchedulesAhead, (schedules) => {
      metrics.schedulesAheadCounted(schedules);
      events.emit({ type: 'schedulesAheadCounted', schedules });
    }),
    part(deps, sampleNotifiers, emitNotifiers),
    secretKeysPart(deps),
  ];
  return createLoop({ name: 'gauges', clock, events, body: () => pass(parts, clock) });
}

/**
 * One sample after the other, since other work needs connections; and each by itself, so that a failed one does not
 * stop the next.
 */
async function pass(parts: readonly Part[], clock: Clock): Promise<number> {
  const began = clock.monotonic();
  let failure: { error: unknown } | undefined;
  for (const part of parts) {
    // The next pass goes on: the watchdog must not treat a long pass as one that hangs.
    if (clock.monotonic() - began > LIMIT_MS) break;
    if (part.dueAt <= clock.monotonic()) await take(part, clock).catch((error: unknown) => (failure = { error }));
  }
  if (failure) throw failure.error;
  return Math.max(0, Math.min(...parts.map(({ dueAt }) => dueAt)) - clock.monotonic());
}

async function take(part: Part, clock: Clock): Promise<void> {
  const began = clock.monotonic();
  try {
    const costMs = await part.take();
    part.dueAt = began + Math.min(OLDEST_SAMPLE_MS, Math.max(SAMPLE_EVERY_MS, REST * costMs));
  } catch (error) {
    part.dueAt = clock.monotonic() + REST_AFTER_FAILURE * (clock.monotonic() - began);
    throw error;
  }
}

function part<T>(
  { database }: GaugeSamplerDeps,
  sample: (db: Executor) => Promise<Sample<T>>,
  emitValues: (values: T) => void,
): Part {
  return {
    dueAt: -Infinity,
    take: async () => {
      const { values, costMs } = await database.run(sample, LIMIT_MS);
      emitValues(values);
      return costMs;
    },
  };
}

function workPart(deps: GaugeSamplerDeps): Part {
  const overdueSeconds = (3 * deps.tickIntervalMs) / 1000;
  return part(
    deps,
    (db) => sampleWork(db, { overdueSeconds }),
    (work) => {
      deps.metrics.workSampled(work);
      const { strandedRuns, effectsFailing, oldestEffectSeconds, schedulesLate, calendarsEnding, zoneData } = work;
      const gauges = { strandedRuns, effectsFailing, oldestEffectSeconds, schedulesLate, calendarsEnding };
      deps.events.emit({ type: 'gaugesSampled', ...gauges, zoneData });
    },
  );
}

/** One page of schedules at a time, however many there are. */
function secretKeysPart(deps: GaugeSamplerDeps): Part {
  const { secrets, events } = deps;
  const walk = { after: null as string | null, missing: new Set<string>() };
  return part(
    deps,
    (db) => sampleUsedKeys(db, walk.after),
    ({ keyIds, next }) => {
      for (const id of keyIds) if (!secrets.has(id)) walk.missing.add(id);
      // A missing key is reported at once; that none is missing, only after a whole walk.
      if (walk.missing.size > 0 || next === null)
        events.emit({ type: 'secretKeysSampled', missing: [...walk.missing].sort() });
      if (next === null) walk.missing.clear();
      walk.after = next;
    },
  );
}
