// extract → transform, in N parts at once → load, handed over in one call; then waits for the end and says how each ended.
//
//   node submit.mjs DAY [PARTS [DAMAGED_PART]]     e.g. node submit.mjs 2026-11-20 3
//
// FIRELOCK_URL: the daemon (http://127.0.0.1:8080); RECEIVER_URL: receiver.mjs (http://127.0.0.1:9000).
// FIRELOCK_TOKEN: of role operator, if the daemon asks for one.
import { setTimeout as sleep } from 'node:timers/promises';

const firelock = `${process.env.FIRELOCK_URL ?? 'http://127.0.0.1:8080'}/api/v1`;
const receiver = process.env.RECEIVER_URL ?? 'http://127.0.0.1:9000';
const [day, parts = '3', damaged] = process.argv.slice(2);
if (day === undefined) {
  console.error('usage: node submit.mjs DAY [PARTS [DAMAGED_PART]]');
  process.exit(2);
}

const ENDED = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled'];

/** `dependsOn` names other items of the call by their `ref`; all are accepted, or none. */
function pipelineOf(day, count, damagedPart) {
  const stage = (path) => ({
    target: { type: 'http', url: receiver + path },
    retry: { maxAttempts: 5, minBackoffSeconds: 1 },
  });
  const transforms = Array.from({ length: count }, (_, part) => ({
    ref: `transform-${part}`,
    ...stage('/transform'),
    payload: { part, parts: count, damaged: part === damagedPart },
    // Nothing to transform where the extract failed: then this fails too, without being started (the default).
    dependsOn: ['extract'],
    onDependencyFailure: 'fail',
  }));
  const load = {
    ref: 'load',
    ...stage('/load'),
    payload: { least: 1 },
    // Loads what there is: it runs when all parts have ended, and is told how.
    dependsOn: transforms.map(({ ref }) => ref),
    onDependencyFailure: 'run',
  };
  const items = [{ ref: 'extract', ...stage('/extract') }, ...transforms, load];
  // With a key for each, a call whose answer was lost can be made again: it answers the runs that it made the first time.
  return items.map((item) => ({ ...item, key: `pipeline/${day}/${item.ref}` }));
}

async function call(path, init) {
  const { FIRELOCK_TOKEN: token } = process.env;
  const headers = {
    ...(init && { 'content-type': 'application/json' }),
    ...(token && { authorization: `Bearer ${token}` }),
  };
  const response = await fetch(firelock + path, { ...init, headers, signal: AbortSignal.timeout(30_000) });
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(JSON.stringify(body)), { status: response.status });
  return body;
}

/** Again for as long as the daemon is away or says "later". What it refuses (4xx) it would refuse for ever. */
async function insist(path, init) {
  for (;;) {
    try {
      return await call(path, init);
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
      console.error(`${error.message}: again in a second`);
      await sleep(1000);
    }
  }
}

const items = pipelineOf(day, Number(parts), Number(damaged ?? NaN));
const { batchId } = await insist('/runs/batch', {
  method: 'POST',
  body: JSON.stringify({ name: `pipeline ${day}`, labels: { day }, items }),
});

let batch = await insist(`/batches/${batchId}`);
while (batch.items.some(({ status }) => !ENDED.includes(status))) {
  await sleep(500);
  batch = await insist(`/batches/${batchId}`);
}
for (const { ref, id } of batch.items) {
  const { status, result, error } = await insist(`/runs/${id}`);
  console.log(`${ref}: ${status} ${result?.body ?? error?.message ?? ''}`);
}
process.exitCode = batch.items.every(({ status }) => status === 'succeeded') ? 0 : 1;
