/**
 * The bare pipeline: the same durable writes in batches and the same POSTs in the simplest loop, with no features. One
 * connection locks and records, one settles whatever was answered meanwhile. If it dies or the target fails, fires are lost.
 */
import { createDelivery } from './delivery.ts';
import { type Armed, serve, sleepUntil } from './process.ts';
import { NEVER, openStatements } from './statements.ts';

void serve(async (options) => {
  const statements = openStatements(options.databaseUrl);
  const delivery = createDelivery(options);
  await statements.createTables();
  let armed: Armed = { count: 0, dueAt: 0, until: null };

  async function plan(): Promise<void> {
    const before = armed.until === null ? NEVER : new Date(armed.until);
    for (;;) {
      const runs = await statements.lock(before);
      if (runs.length === 0) return;
      await statements.recordIntents(runs, armed.until === null ? '1 year' : '1 second');
      delivery.deliver(runs);
    }
  }

  return {
    arm: (given) => {
      armed = given;
      return statements.createSchedules(armed.count, armed.dueAt);
    },
    fire: async () => {
      await delivery.during(async () => {
        await plan();
        for (let second = armed.dueAt + 1000; second < (armed.until ?? 0); second += 1000) {
          await sleepUntil(second);
          await plan();
        }
        // What is not looked at any more must not be due when the next ones are.
        if (armed.until !== null) await statements.removeSchedules();
      });
      return [];
    },
  };
});
