/** The thread of watchdog.ts: ends the process when the count of the main thread stands still for too many turns of its own. */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';

const { turns, maxTurns, turnMs } = workerData as { turns: Int32Array; maxTurns: number; turnMs: number };

let last = -1;
let still = 0;
setInterval(() => {
  const count = Atomics.load(turns, 0);
  still = count === last ? still + 1 : 0;
  last = count;
  if (still < maxTurns) return;
  const message = `firelock: its event loop has been blocked for ${maxTurns} turns of the watchdog; the process ends`;
  // The main thread can no longer write log lines.
  writeSync(2, `${message}\n`);
  process.kill(process.pid, 'SIGKILL');
}, turnMs);
