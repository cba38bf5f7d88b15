/** The ceiling of the database: the same writes in the same batches, one after the other on one connection, with no HTTP. */
import { serve } from './process.ts';
import { NEVER, openStatements } from './statements.ts';

void serve(async ({ databaseUrl }) => {
  const statements = openStatements(databaseUrl);
  await statements.createTables();
  return {
    arm: ({ count, dueAt }) => statements.createSchedules(count, dueAt),
    fire: async () => {
      for (;;) {
        const runs = await statements.lock(NEVER);
        if (runs.length === 0) return [];
        await statements.recordIntents(runs, '1 year');
        await statements.settle(runs);
      }
    },
  };
});
