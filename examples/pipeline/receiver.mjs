// The three stages of the pipeline, as an HTTP service: POST /extract, /transform and /load. An answer's body is kept as
// the run's result (its first 4 KiB), and comes to the runs that depend on it in `dependencies`.
//
//   PORT=9000 node receiver.mjs
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

/** Stands for where the data lies. What stages tell each other is where to find it: a result has room for little more. */
const storage = new Map();

const stages = {
  // Everything is written under the run's id, the same in each of its attempts: a repeated one overwrites its own work.
  '/extract': ({ runId }) => {
    const rows = Array.from({ length: 12 }, (_, row) => row + 1);
    storage.set(`extracted/${runId}`, rows);
    return { stored: `extracted/${runId}`, rows: rows.length };
  },

  '/transform': ({ runId, dependencies, payload: { part, parts, damaged } }) => {
    const { stored } = resultOf(dependencies[0]);
    const rows = storage.get(stored).filter((row) => row % parts === part);
    // 422 is an answer for good: the run has failed. A 503 would be tried again.
    if (damaged) throw Object.assign(new Error(`part ${part} cannot be read`), { status: 422 });
    const key = `transformed/${runId}`;
    storage.set(
      key,
      rows.map((row) => row * row),
    );
    return { stored: key, part };
  },

  // It was asked to run also when parts failed (`onDependencyFailure: "run"`): so it has to look at each.
  '/load': ({ dependencies, payload: { least } }) => {
    const arrived = dependencies.filter(({ status }) => status === 'succeeded').map(resultOf);
    if (arrived.length < least) {
      throw Object.assign(new Error(`${arrived.length} parts are too few`), { status: 422 });
    }
    const total = arrived.flatMap(({ stored }) => storage.get(stored)).reduce((sum, row) => sum + row, 0);
    return { total, parts: arrived.length, missing: dependencies.length - arrived.length };
  },
};

/** A dependency is {runId, status, error, result: {statusCode, body}}; the body is the text that was answered. */
function resultOf({ result }) {
  return JSON.parse(result.body);
}

async function answer(request) {
  const stage = stages[request.url];
  if (request.method !== 'POST' || stage === undefined) return [404, { error: 'no such stage' }];
  try {
    return [200, stage(await json(request))];
  } catch (error) {
    return [error.status ?? 500, { error: error.message }];
  }
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request);
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1', () => {
  console.log(`receiver listens on http://127.0.0.1:${server.address().port}`);
});
