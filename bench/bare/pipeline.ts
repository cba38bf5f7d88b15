/**
 * The bare pipeline: the same durable writes in batches and the same POSTs in the simplest loop, with no features. One
 * connection locks and records, one settles whatever was answered meanwhile. If it dies or the target fails, fires are lost.
 */
import { createPoster } from './poster.ts';
import { serve } from './process.ts';
import { BATCH, type BareRun, openStatements } from './statements.ts';

void serve(async ({ databaseUrl, targetUrl, connections }) => {
  const statements = openStatements(databaseUrl);
  const settling = openStatements(databaseUrl);
  await statements.createTables();
  const answered: BareRun[] = [];
  let underWay = 0;
  let wake: () => void = () => undefined;
  const poster = createPoster(targetUrl, connections, (run) => {
    answered.push(run as BareRun);
    wake();
  });

  async function plan(): Promise<void> {
    for (;;) {
      const runs = await statements.lock();
      if (runs.length === 0) return;
      await statements.recordIntents(runs);
      underWay += runs.length;
      for (const run of runs) poster.post(run);
    }
  }

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
    arm: (count, dueAt) => statements.createSchedules(count, dueAt),
    fire: async () => {
      let planned = false;
      const settled = settleUntil(() => planned);
      await plan();
      planned = true;
      wake();
      await settled;
      return [];
    },
  };
});
