import type { Lease } from './lease.ts';
import type { Turning } from './loop.ts';

/** What an instance says of itself at /readyz: `ready` when every check is `ok`; warnings do not change that. */
export interface Readiness {
  status: 'ready' | 'unavailable';
  checks: Record<string, string>;
  warnings: string[];
}

export interface InstanceState {
  migrated: boolean;
  stopping: boolean;
  /** Claimed by an instance that is silent; as of the last sample. */
  strandedRuns: number;
}

/** What must have come back from a pass, or succeeded in one, within this time. */
const LOOP_LIMIT_MS = 30_000;

export function readinessOf(
  { migrated, stopping, strandedRuns }: InstanceState,
  lease: Lease,
  loops: readonly Turning[],
): Readiness {
  const stuck = loops.filter((loop) => loop.inPassMs() > LOOP_LIMIT_MS).map((loop) => loop.name);
  const checks = {
    migrations: migrated ? 'ok' : 'the database has not been reached, or its schema is not up to date yet',
    // Told by the heartbeats: what is asked of it every few seconds, in any case.
    database: lease.holds() ? 'ok' : 'no heartbeat was answered lately: it is out of reach or slow',
    lease: lease.holds() ? 'ok' : 'it has run out: nothing is sent until a heartbeat is answered',
    loops: stuck.length === 0 ? 'ok' : `no pass came back lately: ${stuck.join(', ')}`,
    shutdown: stopping ? 'stopping' : 'ok',
  };
  const ready = Object.values(checks).every((check) => check === 'ok');
  return { status: ready ? 'ready' : 'unavailable', checks, warnings: warningsOf(loops, strandedRuns) };
}

function warningsOf(loops: readonly Turning[], strandedRuns: number): string[] {
  const failing = loops.filter((loop) => loop.failingMs() > LOOP_LIMIT_MS);
  const warnings = failing.map(
    (loop) =>
      `the ${loop.name} loop has failed for ${Math.round(loop.failingMs() / 1000)} s; the log says why`,
  );
  if (strandedRuns === 0) return warnings;
  return [
    ...warnings,
    `${strandedRuns} runs are claimed by an instance that is silent; once it is declared dead they are driven on`,
  ];
}
