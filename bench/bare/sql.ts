/** The ceiling of the database: the same statements in the same lanes, with no HTTP. */
import { drain } from './lanes.ts';
import { serve } from './process.ts';
import { NEVER, openStore } from './statements.ts';

void serve(async ({ databaseUrl }) => {
  const store = await openStore(databaseUrl, 'schedules');
  return {
    arm: ({ count, dueAt }) => store.putSchedules(count, dueAt),
    fire: async () => {
      await Promise.all(store.lanes.map((lane) => drain(lane, () => lane.fire(NEVER, '10 years'))));
      return [];
    },
  };
});
