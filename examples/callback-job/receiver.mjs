// Jobs that take longer than a request may: POST /jobs is answered 202 at once, the work is done in the background, and
// firelock is told how it goes (heartbeat) and how it ended (complete). schedule.sh makes a schedule for it.
//
//   node receiver.mjs      PORT (9000), FIRELOCK_URL (http://127.0.0.1:8080), HEARTBEAT_SECONDS (20: a third of the
//                          schedule's completionTimeoutSeconds, so that two may be lost before the run expires),
//                          FIRELOCK_TOKEN (of role worker; none where the daemon asks for none)
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

const firelock = `${process.env.FIRELOCK_URL ?? 'http://127.0.0.1:8080'}/api/v1`;
const headers = {
  'content-type': 'application/json',
  ...(process.env.FIRELOCK_TOKEN && { authorization: `Bearer ${process.env.FIRELOCK_TOKEN}` }),
};
const heartbeatMs = Number(process.env.HEARTBEAT_SECONDS ?? 20) * 1000;

/**
 * By run id: {executionId, attempt, status, progress, stop, outcome}. It dies with this process, and so does the work:
 * then the lookup answers 404, "not here", and the run is sent again. Work that goes on without this process needs a
 * table instead of a map.
 */
const jobs = new Map();

/** Put your work here; `signal` says when its result is no longer wanted. */
async function work({ steps = 10, stepSeconds = 1 }, { signal, progress }) {
  // What it throws is reported as `failed`, which is final.
  if (!(stepSeconds >= 0)) throw new RangeError('stepSeconds has to be a number');
  for (let step = 1; step <= steps; step += 1) {
    await sleep(stepSeconds * 1000, undefined, { signal });
    progress(step / steps);
  }
  return { steps };
}

/** The same run can come twice (an answer was lost, a heartbeat came too late): it is the same job, not another one. */
function accept({ runId, attempt, payload }) {
  const known = jobs.get(runId);
  if (known !== undefined && known.status !== 'stopped') {
    // From now on it has to be reported under the newer attempt: the older one would be refused.
    known.attempt = Math.max(known.attempt, attempt);
    if (known.outcome !== undefined) void report(runId, known);
    return known;
  }
  const job = {
    executionId: `job-${runId}`,
    attempt,
    status: 'running',
    progress: 0,
    stop: new AbortController(),
  };
  jobs.set(runId, job);
  void run(runId, job, payload ?? {});
  return job;
}

async function run(runId, job, payload) {
  console.log(`${runId}: started`);
  const heartbeat = setInterval(() => void tell(runId, job, 'heartbeat', { progress: job.progress }), heartbeatMs);
  try {
    const progress = (done) => (job.progress = done);
    job.outcome = { status: 'succeeded', result: await work(payload, { signal: job.stop.signal, progress }) };
  } catch (error) {
    if (job.stop.signal.aborted) {
      job.status = 'stopped';
      console.log(`${runId}: stopped`);
      return;
    }
    job.outcome = { status: 'failed', error: String(error) };
  } finally {
    clearInterval(heartbeat);
  }
  job.status = job.outcome.status;
  await report(runId, job);
}

/** Reports how it ended until an instance takes the report: an unreported run would be done again. */
async function report(runId, job) {
  while (!(await tell(runId, job, 'complete', job.outcome))) await sleep(2000);
}

/**
 * The attempt goes with every word, so that an old one cannot speak for a newer one. 409: this attempt has no say (any
 * more), as the run was cancelled, or sent again, or has ended. Then stop working, and do not say it again.
 */
async function tell(runId, job, what, word) {
  try {
    const response = await fetch(`${firelock}/runs/${runId}/${what}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ ...word, attempt: job.attempt }),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    console.log(`${runId}: ${what} ${response.status}${response.ok ? '' : ` ${text}`}`);
    if (response.status === 409) job.stop.abort();
    return response.status < 500 && response.status !== 429;
  } catch (error) {
    console.log(`${runId}: ${what} failed, ${error.message}`);
    return false;
  }
}

async function answer(request) {
  const { pathname } = new URL(request.url, 'http://localhost');
  const [, collection, runId, verb] = pathname.split('/');
  const call = `${request.method} ${[collection, runId && ':id', verb].filter(Boolean).join('/')}`;
  if (call === 'POST jobs') return [202, { executionId: accept(await json(request)).executionId }];
  const job = jobs.get(runId);
  if (job === undefined || job.status === 'stopped') return [404, {}];
  if (call === 'POST jobs/:id/cancel') {
    job.stop.abort();
    return [202, {}];
  }
  if (call !== 'GET jobs/:id') return [404, {}];
  // The lookup, asked when firelock does not know whether the run has arrived, or had no report of it in time. It counts as
  // an attempt, but nothing is sent by it: the attempt that this job was given has the say still.
  return [200, { executionId: job.executionId, status: job.status }];
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request).catch((error) => [400, { error: error.message }]);
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1', () => {
  console.log(`receiver listens on http://127.0.0.1:${server.address().port}`);
});
