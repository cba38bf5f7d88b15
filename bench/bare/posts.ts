/** The ceiling of HTTP: the same POSTs over as many connections, with no database. */
import { randomUUID } from 'node:crypto';
import { openTarget } from './lanes.ts';
import type { Post } from './poster.ts';
import { serve } from './process.ts';

void serve(({ targetUrl }) => {
  const poster = openTarget(targetUrl);
  let armed: Post[] = [];
  return {
    arm: ({ count, dueAt }) => {
      const scheduledFor = new Date(dueAt).toISOString();
      armed = Array.from({ length: count }, (_, index) => ({
        runId: randomUUID(),
        scheduleId: String(index),
        scheduledFor,
      }));
      return Promise.resolve();
    },
    fire: async () => {
      await poster.postAll(armed);
      return armed.map(({ runId }) => runId);
    },
  };
});
