/**
 * The bare pipeline: the same durable writes in batches and the same kind of POSTs in the simplest loop, with no
 * features. Several lanes, each with a connection, do side by side: lock, record and advance in one statement; POST;
 * settle in one statement. If it dies or the target fails, fires are lost.
 */
import { drain, openTarget } from './lanes.ts';
import { type Armed, serve, sleepUntil } from './process.ts';
import { type Lane, NEVER, openStore } from './statements.ts';

void serve(async ({ databaseUrl, targetUrl }) => {
  const store = await openStore(databaseUrl, 'schedules');
  const poster = openTarget(targetUrl);
  let armed: Armed = { count: 0, dueAt: 0, until: null };

  async function fireIn(lane: Lane): Promise<void> {
    const { dueAt, until } = armed;
    if (until === null) return drain(lane, () => lane.fire(NEVER, '10 years'), poster);
    for (let second = dueAt; second < until; second += 1000) {
      await sleepUntil(second);
      await drain(lane, () => lane.fire(new Date(until), '1 second'), poster);
    }
  }

  return {
    arm: async (given) => {
      armed = given;
      await store.putSchedules(armed.count, armed.dueAt);
    },
    fire: () => Promise.all(store.lanes.map(fireIn)),
  };
});
