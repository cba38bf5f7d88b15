import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Caller } from '../../core/access/roles.ts';
import { MAX_APPENDED, MAX_LOG_OFFSET, MAX_LOG_PART, logRoom } from '../../core/runs/run-log.ts';
import { appendRunLog } from '../../operations/runs/worker-reports.ts';
import { type ReadLog, readLog } from '../../store/runs/logs/read-log.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { runIdParams, workerIdText } from '../http/common-schemas.ts';
import { queryInteger, queryWhole } from '../http/filter-schemas.ts';
import { refuseOtherEncodings } from '../http/plugins/bodies.ts';
import { Problem, noSuch } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';

const MAX_ATTEMPT = 2 ** 31 - 1;

const appendQuery = z.strictObject({
  attempt: queryWhole(1, MAX_ATTEMPT, { description: 'The `attempt` that was handed over.', example: 1 }),
  offset: queryWhole(0, MAX_LOG_OFFSET, {
    description:
      'How many bytes the attempt has written before. Beyond the end of the log: what lies between counts as left out.',
    example: 0,
  }),
  workerId: workerIdText.optional(),
});

const appendedBody = z.unknown().meta({
  type: 'string',
  description: `Any bytes, at most ${MAX_APPENDED}: they are kept as they are.`,
});

const appended = z.object({ offset: z.int().describe('Where what comes next begins.') }).meta({ id: 'LogAppended' });

const readQuery = z.strictObject({
  attempt: queryInteger(1, MAX_ATTEMPT, undefined).describe('The newest where it is not given.'),
  offset: queryInteger(0, Number.MAX_SAFE_INTEGER, 0).meta({ format: 'int64' }),
  waitSeconds: queryInteger(0, 60, 0).describe(
    'For how long to wait for more, or for the end of the attempt, where there is nothing yet.',
  ),
});

const tags = [TAGS.runs];

/** Their bodies and answers are bytes: so they have a part of the server for themselves. */
export function addRunLogRoutes(api: Api, deps: ApiDeps): void {
  void api.register((logs: Api, _options, done) => {
    logs.removeAllContentTypeParsers();
    const parse = async (request: FastifyRequest, bytes: Buffer): Promise<Buffer> => {
      refuseOtherEncodings(request);
      return Promise.resolve(bytes);
    };
    logs.addContentTypeParser<Buffer>('text/plain', { parseAs: 'buffer' }, parse);
    logs.addContentTypeParser('*', () => Promise.reject(new Problem(415, 'the body must be text/plain')));
    addAppendRoute(logs, deps);
    addReadRoute(logs, deps);
    done();
  });
}

function addAppendRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /runs/:id/log',
    operationId: 'appendRunLog',
    config: { role: 'worker', scope: 'run', audits: [] },
    bodyLimit: MAX_APPENDED,
    summary: 'Append to what a run prints, before it completes: for pull workers and callbacks',
    description:
      'What is there already is not written again, so that an append whose answer was lost can be repeated. Of each attempt the ' +
      'first quarter of `FIRELOCK_RUN_LOG_KIB` and the newest three quarters are kept. Another attempt’s or worker’s, or more ' +
      'than a minute after the end: 409. More than 4 MiB a second of one token: 429. Switched off: 404.',
    tags,
    consumes: ['text/plain'],
    params: runIdParams,
    querystring: appendQuery,
    body: appendedBody,
    answers: { 200: json('It is kept, or was kept before', appended) },
    refusals: [404, 409],
    handler: async ({ params: { id }, query: { workerId = null, ...query }, body, raw, caller }) => {
      const room = roomOf(deps);
      const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      deps.access.takeLogBytes(raw, caller, bytes.length);
      const done = await appendRunLog({ ...deps, room }, id, { ...query, workerId, bytes });
      if (done.kind === 'noSuchRun') throw noSuch(`run ${id}`);
      if (done.kind === 'notPossible') throw new Problem(409, done.message, { run: done.summary });
      return { offset: done.offset } satisfies z.output<typeof appended>;
    },
  });
}

function addReadRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'GET /runs/:id/log',
    operationId: 'getRunLog',
    config: { role: 'any', scope: 'run', pace: 'waits' },
    summary: 'What an attempt of a run has printed, from an offset on',
    description:
      `At most ${MAX_LOG_PART} bytes, up to the next place where something was left out; empty where nothing was printed. ` +
      'A viewer reads all logs, and a worker those of the runs that it may claim. Switched off: 404.',
    tags,
    params: runIdParams,
    querystring: readQuery,
    answers: { 200: PART },
    refusals: [404],
    handler: async (request, reply) => {
      const read = await readPatiently(deps, request);
      if (deps.logFollowers.isStopping()) void reply.header('Connection', 'close');
      return sendPart(reply, read);
    },
  });
}

const PART = {
  description:
    'The bytes as they were appended. `Firelock-Log-Offset` is where the next part begins, `Firelock-Log-Skipped` how many bytes were ' +
    'left out between the offset that was asked for and the first of this part, `Firelock-Log-Attempt` whose log it is, and ' +
    '`Firelock-Log-Complete` is `true` where the attempt is over and this part reaches the end of the log.',
  content: { 'text/plain': { schema: z.string() } },
};

type ReadRequest = Pick<FastifyRequest, 'caller' | 'patience'> & {
  params: z.output<typeof runIdParams>;
  query: z.output<typeof readQuery>;
};

/** @throws Problem 401, 403, 404 */
async function readPatiently(deps: ApiDeps, request: ReadRequest): Promise<ReadLog> {
  const { clock, logFollowers } = deps;
  const { id: runId } = request.params;
  const { offset, waitSeconds, ...query } = request.query;
  const { patience } = request;
  const signals = [patience.gone, patience.enough];
  const until = clock.monotonic() + waitSeconds * 1000;
  for (let attempt = query.attempt ?? null; ;) {
    const read = await readFor(deps, request.caller, { runId, attempt, offset });
    const refusal = patience.refusal();
    if (refusal !== null) throw refusal;
    const ms = until - clock.monotonic();
    const isNews = read.next !== offset || read.isComplete;
    const isEnough = ms <= 0 || logFollowers.isStopping() || signals.some(({ aborted }) => aborted);
    if (isNews || isEnough) return read;
    // A call that waits stays with the attempt that was the newest when it came.
    attempt = read.attempt;
    await logFollowers.wait({ runId, attempt, offset }, { ms, signals });
  }
}

/** @throws Problem 403, 404 */
async function readFor(deps: ApiDeps, { role }: Caller, question: Parameters<typeof readLog>[1]): Promise<ReadLog> {
  const room = roomOf(deps);
  const { runId, attempt, offset } = question;
  const read = await deps.logFollowers.read(`${runId} ${attempt} ${offset}`, () =>
    deps.database.run((db) => readLog(db, question, room)),
  );
  if (read === null) throw noSuch(`run ${runId}`);
  if (role !== 'worker' || read.queue !== null) return read;
  throw new Problem(403, 'a worker reads the logs of the runs that it may claim; this one is of no queue');
}

function sendPart(reply: FastifyReply, { bytes, next, skipped, attempt, isComplete }: ReadLog): FastifyReply {
  return reply
    .type('text/plain; charset=utf-8')
    .headers({
      'Firelock-Log-Offset': String(next),
      'Firelock-Log-Skipped': String(skipped),
      'Firelock-Log-Attempt': String(attempt),
      'Firelock-Log-Complete': String(isComplete),
    })
    .send(bytes);
}

/** @throws Problem 404 */
function roomOf({ runLogKib }: ApiDeps) {
  if (runLogKib === 0) throw new Problem(404, 'logs of runs are switched off here (FIRELOCK_RUN_LOG_KIB=0)');
  return logRoom(runLogKib);
}
