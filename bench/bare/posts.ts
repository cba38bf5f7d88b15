/** The ceiling of HTTP: the same POSTs over as many connections, with no database. */
import { randomUUID } from 'node:crypto';
import { type Post, createPoster } from './poster.ts';
import { serve } from './process.ts';

void serve(({ targetUrl, connections }) => {
  let armed: Post[] = [];
  let unanswered = 0;
  let done: () => void = () => undefined;
  const poster = createPoster(targetUrl, connections, () => {
    unanswered -= 1;
    if (unanswered === 0) done();
  });
  return {
    arm: ({ count, dueAt }) => {
      const scheduledFor = new Date(dueAt).toISOString();
      armed = Array.from({ length: count }, (_, index) => ({
        runId: randomUUID(),
        scheduleId: `herd-${index}`,
        scheduledFor,
      }));
      return Promise.resolve();
    },
    fire: async () => {
      unanswered = armed.length;
      const answered = new Promise<void>((resolve) => (done = resolve));
      for (const post of armed) poster.post(post);
      await answered;
      return armed.map(({ runId }) => runId);
    },
  };
});
