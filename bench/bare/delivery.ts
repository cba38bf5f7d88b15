import { createPoster } from './poster.ts';
import type { BareOptions } from './process.ts';
import { BATCH, type BareRun, openStatements } from './statements.ts';

export interface Delivery {
  /** Posts them on whatever connection is free. */
  deliver(runs: readonly BareRun[]): void;
  /** Settles whatever is answered, until `work` is done and nothing is under way. */
  during(work: () => Promise<void>): Promise<void>;
}

/** The later half of the bare pipeline: POSTs, and one connection to settle what was answered meanwhile. */
export function createDelivery({ databaseUrl, targetUrl, connections }: BareOptions): Delivery {
  const settling = openStatements(databaseUrl);
  const answered: BareRun[] = [];
  let underWay = 0;
  let wake: () => void = () => undefined;
  const poster = createPoster(targetUrl, connections, (run) => {
    answered.push(run as BareRun);
    wake();
  });

  async function settleUntil(planned: () => boolean): Promise<void> {
    while (!planned() || underWay > 0) {
      const batch = answered.splice(0, BATCH);
      if (batch.length === 0) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      await settling.settle(batch);
      underWay -= batch.length;
    }
  }

  return {
    deliver: (runs) => {
      underWay += runs.length;
      for (const run of runs) poster.post(run);
    },
    during: async (work) => {
      let planned = false;
      const settled = settleUntil(() => planned);
      await work();
      planned = true;
      wake();
      await settled;
    },
  };
}
