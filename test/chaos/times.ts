import type { History } from './checker/history.ts';
import { CANARY } from './load/load.ts';

/** How often a daemon does what it does, and how long it waits. */
export interface Times {
  ttlSeconds: number;
  /**
   * With a timeout this is how long another instance waits before it believes that an attempt at most once did not arrive.
   * An instance that is frozen for longer, just before its first byte, defeats that; so no freeze here lasts as long.
   */
  lockTtlSeconds: number;
  tickMs: number;
  heartbeatSeconds: number;
  recoverySeconds: number;
}

/** A twentieth of the usual ones, as far as the configuration goes down. */
export const SHORT: Times = {
  ttlSeconds: 4,
  lockTtlSeconds: 12,
  tickMs: 200,
  heartbeatSeconds: 1,
  recoverySeconds: 1,
};
/** As a daemon has them by itself. */
export const USUAL: Times = {
  ttlSeconds: 10,
  lockTtlSeconds: 120,
  tickMs: 1_000,
  heartbeatSeconds: 2,
  recoverySeconds: 5,
};

const MAX_RECOVERIES = 20;
export const variablesOf = (times: Times): Record<string, string> => ({
  LOG_LEVEL: 'info',
  FIRELOCK_TICK_INTERVAL_MS: String(times.tickMs),
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: String(times.heartbeatSeconds),
  FIRELOCK_INSTANCE_TTL_SECONDS: String(times.ttlSeconds),
  FIRELOCK_LOCK_TTL_SECONDS: String(times.lockTtlSeconds),
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: String(times.recoverySeconds),
  FIRELOCK_MAX_RECOVERIES: String(MAX_RECOVERIES),
  FIRELOCK_SHUTDOWN_SECONDS: '5',
  FIRELOCK_SECRET_KEYS: `chaos:${Buffer.alloc(32, 7).toString('base64')}`,
});
export const settingsOf = ({ ttlSeconds, lockTtlSeconds }: Times): History['settings'] => ({
  canaryId: CANARY,
  ttlSeconds,
  lockTtlSeconds,
  maxRecoveries: MAX_RECOVERIES,
  maxRecoveryAgeSeconds: 86_400,
});
