import { applyEffects } from '../../src/store/effects/apply-effects.ts';
import { lockEffects } from '../../src/store/effects/effect-rows.ts';
import type { Transaction } from '../../src/postgres/executor.ts';
import type { Store } from './pipeline.ts';

/** Does what is to follow from so many ends, in a transaction. */
export async function applyNext(tx: Transaction, limit = 100, { withBegun = true } = {}) {
  const fresh = await lockEffects(tx, { which: 'new', limit, besides: [] });
  const alerts = await lockEffects(tx, { which: 'alerts', limit, besides: [] });
  const begun = withBegun ? await lockEffects(tx, { which: 'begun', limit: 20, besides: [] }) : [];
  return applyEffects(tx, [...fresh, ...alerts, ...begun], { publicUrl: null });
}

/** Does what is to follow from ends until nothing is left that can be done, as the loop of an instance would. */
export async function applyAll({ database }: Pick<Store, 'database'>): Promise<void> {
  for (;;) {
    const { done, begun } = await database.transaction((tx) => applyNext(tx));
    if (done.length + begun.length === 0) return;
  }
}
