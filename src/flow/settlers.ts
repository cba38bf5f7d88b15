import type { ScopeShares } from '../core/access/scope-shares.ts';
import { WAIT_IF_AWAITED_MS } from './settle-queue.ts';
import { type SettleDeps, type Settler, createSettler } from './settle.ts';

interface Settlers {
  /** Takes all outcomes. */
  settler: Settler;
  /** Writes those that are of very many of one scope; null: no scopes share the instance. */
  settlerOfMany: Settler | null;
}

/**
 * Where scopes share the instance (FIRELOCK_SCOPES), the outcomes of a scope that has very many runs to send are written by a loop of
 * their own. So the outcomes of the other scopes, and what follows from them, wait neither for these nor for more of these.
 */
export function createSettlers(deps: SettleDeps & { scopeShares: ScopeShares }): Settlers {
  if (deps.scopeShares.length === 0) return { settler: createSettler(deps), settlerOfMany: null };
  const settler = createSettler(deps, { maxWaitMs: WAIT_IF_AWAITED_MS });
  const ofMany = createSettler(deps, { name: 'settle-many' });
  return {
    settler: {
      ...settler,
      add: (ended) => (ended.isOfMany ? ofMany : settler).add(ended),
      flush: async () => {
        await Promise.all([settler.flush(), ofMany.flush()]);
      },
    },
    settlerOfMany: ofMany,
  };
}
