// What the package `firelock-client/worker` is for those who import it.
export { Refused } from '../receiver/reply.ts';
export type { RunHandler, RunJob } from './lead.ts';
export { type Worker, type WorkerOptions, work } from './worker.ts';
