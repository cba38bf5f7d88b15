/**
 * The bare pipeline for runs that stand there already, all with one moment: take a batch, post it, settle it, in several
 * lanes side by side. As the other it has no features; if it dies or the target fails, runs stay claimed for ever.
 */
import { drain, openTarget } from './lanes.ts';
import { serve } from './process.ts';
import { openStore } from './statements.ts';

void serve(async ({ databaseUrl, targetUrl }) => {
  const store = await openStore(databaseUrl, 'runs');
  const poster = openTarget(targetUrl);
  return {
    arm: ({ count, dueAt }) => store.putRuns(count, dueAt),
    fire: () => Promise.all(store.lanes.map((lane) => drain(lane, () => lane.take(), poster))),
  };
});
