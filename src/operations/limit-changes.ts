/**
 * Guarantees: another value of `maxRunning` counts from the commit on.
 * Transaction: that of named-changes.ts, under the lock of the limit's row, which admission locks before it gives places.
 * If the process dies here: any instance gives the places that are free now.
 */
import type { Wake } from '../runtime/loop/wake.ts';
import { type Limit, LIMIT_ROWS } from '../store/limits/limits.ts';
import type { NamedKind } from './named-changes.ts';

type LimitContent = Pick<Limit, 'description' | 'maxRunning'>;

/** A smaller `maxRunning` stops nothing that is under way: no run begins until enough have ended. */
export const LIMIT_KIND: NamedKind<Limit, LimitContent, { wake: Wake }> = {
  noun: 'limit',
  rows: LIMIT_ROWS,
  detail: ({ maxRunning }) => ({ maxRunning }),
  fieldsOf: ({ description, maxRunning }) => ({ description, maxRunning }),
  complete: ({ description, maxRunning }, { id, version, updatedAt, before }) => {
    const { running = 0, waiting = 0 } = before ?? {};
    return { id, description, maxRunning, running, waiting, version, updatedAt };
  },
  afterPut: ({ wake }, limit) => {
    wake.admission();
    return limit;
  },
};
