// A pull worker: takes runs of a queue, one at a time, works on each, says how it ended. Start as many as you like; a run
// is leased to one of them at a time. Copy it as it is: it imports nothing, and runs as a module or as CommonJS.
//
//   node pull-worker.js QUEUE      FIRELOCK_URL (http://127.0.0.1:8080), WORKER_ID (one of its own), LEASE_SECONDS (30),
//                                  FIRELOCK_TOKEN (of role worker; none where the daemon asks for none)

/**
 * Put your work here. What it returns becomes the run's result; what it throws ends the run as failed, for good. A run may
 * come twice (its worker died, or was cut off, before it could report): keep `run.id` with what is done.
 * @param signal is aborted when the lease is lost: another worker may have the run by now, or it was cancelled.
 */
async function work(run, signal) {
  const { seconds = 1, text = null } = run.payload ?? {};
  await sleep(seconds * 1000, signal);
  signal.throwIfAborted();
  return { did: text };
}

const queue = process.argv[2];
const firelock = `${process.env.FIRELOCK_URL ?? 'http://127.0.0.1:8080'}/api/v1`;
const headers = {
  'content-type': 'application/json',
  ...(process.env.FIRELOCK_TOKEN && { authorization: `Bearer ${process.env.FIRELOCK_TOKEN}` }),
};
const workerId = process.env.WORKER_ID ?? `pull-worker-${globalThis.crypto.randomUUID()}`;
const leaseSeconds = Number(process.env.LEASE_SECONDS ?? 30);
/** Aborted by SIGTERM or Ctrl-C: no more claims, the run in hand is finished. */
const stopping = new AbortController();

async function main() {
  if (queue === undefined) throw new Error('usage: node pull-worker.js QUEUE');
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => stopping.abort());
  console.log(`${workerId} waits for work in ${queue}`);
  let failures = 0;
  while (!stopping.signal.aborted) {
    try {
      for (const run of await claim()) await lead(run);
      failures = 0;
    } catch (error) {
      if (stopping.signal.aborted) break;
      if (error.isFinal) throw error;
      failures += 1;
      await backOff('claim', error, failures, stopping.signal);
    }
  }
  console.log(`${workerId} has stopped`);
}

/** Waits at the daemon for up to 20 s until there is a run. If this hangs up before, the daemon takes it back. */
async function claim() {
  const word = { workerId, leaseSeconds, max: 1, waitSeconds: 20 };
  return (await post(`/queues/${queue}/claim`, word, stopping.signal)).items;
}

async function lead(run) {
  const lost = new AbortController();
  // Word of one attempt by one worker: if the run has gone on without us, it is refused (409).
  const speaker = { attempt: run.attempts, workerId };
  const heartbeat = setInterval(() => {
    post(`/runs/${run.id}/heartbeat`, speaker).catch((error) => {
      console.log(`${run.id}: heartbeat: ${error.message}`);
      if (error.isFinal) lost.abort();
      // Else the daemon is away. So work goes on: whether the lease was lost meanwhile is said when it is back.
    });
  }, leaseSeconds * 333);
  const end = await work(run, lost.signal)
    .then((result) => ({ status: 'succeeded', result }))
    .catch((error) => ({ status: 'failed', error: String(error) }))
    .finally(() => clearInterval(heartbeat));
  if (lost.signal.aborted) console.log(`${run.id}: given up`);
  else await report(run, { ...end, ...speaker });
}

/** Until an instance takes the report, also while stopping: an unreported run is done again. */
async function report(run, word) {
  for (let failures = 1; ; failures += 1) {
    try {
      await post(`/runs/${run.id}/complete`, word);
      return console.log(`${run.id}: ${word.status}`);
    } catch (error) {
      if (error.isFinal) return console.log(`${run.id}: not taken: ${error.message}`);
      await backOff(run.id, error, failures);
    }
  }
}

/** @throws an error that `isFinal` where asking again is of no use: 4xx but 408 and 429. */
async function post(path, body, signal) {
  const limit = AbortSignal.timeout(30_000);
  const response = await fetch(firelock + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
  });
  const { status } = response;
  if (response.ok) return response.json();
  const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  throw Object.assign(new Error(`${status} ${await response.text()}`), { isFinal });
}

/** 1, 2, 4 … 30 seconds, of which half at random, so that not all workers come back at once. */
async function backOff(what, error, failures, signal) {
  const seconds = Math.min(2 ** (failures - 1), 30) * (0.5 + Math.random() / 2);
  console.log(`${what}: ${error.cause?.code ?? error.message}; again in ${seconds.toFixed(1)} s`);
  await sleep(seconds * 1000, signal);
}

/** Resolves early when the signal is aborted. */
function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
