/**
 * The bare pipeline for runs that stand there already, all with one moment: claim a batch, post it, settle whatever was
 * answered meanwhile. As the other it has no features; if it dies or the target fails, runs stay claimed for ever.
 */
import { createDelivery } from './delivery.ts';
import { serve } from './process.ts';
import { openStatements } from './statements.ts';

void serve(async (options) => {
  const statements = openStatements(options.databaseUrl);
  const delivery = createDelivery(options);
  await statements.createTables();
  await statements.createBacklogIndex();
  return {
    arm: ({ count, dueAt }) => statements.createRuns(count, dueAt),
    fire: async () => {
      await delivery.during(async () => {
        for (;;) {
          const runs = await statements.claim();
          if (runs.length === 0) return;
          delivery.deliver(runs);
        }
      });
      return [];
    },
  };
});
