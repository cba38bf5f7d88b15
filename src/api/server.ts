import Fastify, { type FastifyBaseLogger, LogController } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Api, ApiDeps } from './deps.ts';
import { countCallsUnderWay, guardRoutes } from './access/guard.ts';
import { addCallerRoutes, resumeSessions } from './access/caller-routes.ts';
import { createRefusals } from './audit/entries.ts';
import { addAuditRoute } from './audit/routes.ts';
import { acceptJsonBodies, BODY_LIMIT } from './http/plugins/bodies.ts';
import { addSecurityHeaders, answerProblems, notFound, sendProblem } from './http/plugins/every-answer.ts';
import { limitAnswers } from './http/plugins/answer-bytes.ts';
import { documentRoutes } from './document/openapi.ts';
import { takeCallsInTurn, takeLargeBodiesInTurn } from './http/plugins/in-turn.ts';
import { guardSockets, refuseConnection, SOCKET_LIMITS } from './http/plugins/sockets.ts';
import type { Strangers } from './http/plugins/strangers.ts';
import { unavailable } from './http/problem.ts';
import { stringify } from './http/json/raw-json.ts';
import { addBackfillRoute, addOccurrencesRoute } from './occurrences/routes.ts';
import { addCalendarRoutes } from './calendars/routes.ts';
import { addConnectionRoutes } from './connections/routes.ts';
import { addDashboard, answerLostBrowsers } from './dashboard/routes.ts';
import { addFireRoute, addSkipRoutes } from './schedules/fire-routes.ts';
import { type SignsDeps, addInstanceRoutes, addSignsOfLife, addVerifyRoute } from './instances/routes.ts';
import { addAlertRoute } from './alerts/routes.ts';
import { parseQueryString, validateRequest } from './http/validation.ts';
import { addLimitRoutes } from './limits/routes.ts';
import { addLoadRoute } from './occurrences/load-routes.ts';
import {
  addMaintenanceRoutes,
  addObservingRoute,
  addTakeOverRoute,
  refuseWhileObserving,
} from './instances/installation-routes.ts';
import { addNotifierRoutes } from './notifiers/routes.ts';
import { addOneOffRunRoutes } from './runs/one-off-routes.ts';
import { addPingRoutes } from './pings/routes.ts';
import { withoutPingKeys } from './pings/ping-operations.ts';
import { addPreviewRoutes } from './occurrences/preview-routes.ts';
import { addQueueRoutes } from './queues/routes.ts';
import { addRunActionRoutes } from './runs/action-routes.ts';
import { addRunBulkRoute, addRunRoutes } from './runs/routes.ts';
import { addScheduleBatchRoute, addScheduleBulkRoute } from './schedules/batch-routes.ts';
import { addScheduleRoutes } from './schedules/routes.ts';
import { addStatsRoutes } from './stats/routes.ts';
import { addVersionsRoute } from './schedules/history-routes.ts';

/** The whole HTTP side, not yet listening. Every answer that is no success is problem+json. */
export async function createServer(deps: ApiDeps): Promise<Api> {
  const { server, strangers } = emptyServer(deps);
  answerLostBrowsers(server, deps);
  acceptJsonBodies(server);
  takeLargeBodiesInTurn(server);
  const serveDocument = await documentRoutes(server, deps);
  if (deps.basePath !== '') prefixLocations(server, deps.basePath);
  await server.register(
    (below: Api, _options, done) => {
      if (!deps.hasSignsElsewhere) addSignsOfLife(below, deps);
      addPingRoutes(below, deps);
      addDashboard(below, deps);
      below.get('/openapi.json', { schema: { hide: true } }, serveDocument);
      void below.register(
        (api: Api, _apiOptions, apiDone) => {
          guardApi(api, { ...deps, strangers });
          countCallsUnderWay(api, deps.access);
          limitAnswers(api, deps.answerLimits, ({ raw, caller }) => deps.access.refuse(raw, caller, 'tooMuchUnread'));
          api.setNotFoundHandler(notFound);
          addApi(api, deps);
          apiDone();
        },
        { prefix: '/api/v1' },
      );
      done();
    },
    { prefix: deps.basePath },
  );
  await server.ready();
  return server;
}

function guardApi(api: Api, deps: ApiDeps & { strangers: Strangers }): void {
  const refusals = createRefusals(deps);
  resumeSessions(api, deps);
  guardRoutes(api, {
    ...deps,
    onRefused: (call) => {
      // An instance that observes writes nothing.
      if (deps.installation().mode !== 'observes') refusals.note(call);
    },
  });
  api.addHook('onClose', () => refusals.close());
}

/** The server for probes and Prometheus, on a port of its own; it needs no token. Not yet listening. */
export async function createSignsServer(
  deps: SignsDeps & Pick<ApiDeps, 'logger' | 'basePath' | 'connectionLimits' | 'browserRules'>,
): Promise<Api> {
  const { server } = emptyServer(deps);
  await server.register(
    (below: Api, _options, done) => {
      addSignsOfLife(below, deps);
      done();
    },
    { prefix: deps.basePath },
  );
  await server.ready();
  return server;
}

/**
 * All routes, for the daemon itself: it calls them without a socket (`inject`), as the caller that `access` names. This
 * server never listens. So the daemon's own changes are checked and recorded like those of any other caller.
 */
export async function createInnerServer(deps: ApiDeps): Promise<Api> {
  const { server, strangers } = emptyServer(deps);
  acceptJsonBodies(server);
  await server.register(
    (api: Api, _options, done) => {
      // It calls as an admin, so its role allows every call.
      guardRoutes(api, { ...deps, strangers, onRefused: () => undefined });
      addApi(api, deps);
      done();
    },
    { prefix: '/api/v1' },
  );
  await server.ready();
  return server;
}

function emptyServer(deps: Pick<ApiDeps, 'logger' | 'connectionLimits' | 'browserRules'>) {
  const server: Api = Fastify({
    loggerInstance: withoutChatter(deps.logger),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    ...SOCKET_LIMITS,
    return503OnClosing: false,
    // No hook runs before these errors.
    frameworkErrors: (error, request, reply) => sendProblem(deps.browserRules(request.raw) ?? error, request, reply),
    clientErrorHandler: refuseConnection,
    routerOptions: { querystringParser: parseQueryString, maxParamLength: 16_384 },
  }).withTypeProvider<ZodTypeProvider>();

  // One hook of ours validates all parts. Answers are serialised as they are; their schemas are documentation only.
  server.setValidatorCompiler(() => (value: unknown) => ({ value }));
  server.setSerializerCompiler(() => stringify);
  server.setReplySerializer(stringify);
  answerProblems(server);
  const strangers = guardSockets(server, deps.connectionLimits);
  server.addHook('onRequest', async ({ raw }) => {
    const problem = deps.browserRules(raw);
    if (problem !== null) throw problem;
    return Promise.resolve();
  });
  logRequests(server);
  addSecurityHeaders(server);
  return { server, strangers };
}

/** Routes name their paths without the base path. */
function prefixLocations(server: Api, basePath: string): void {
  server.addHook('onSend', (_request, reply, _payload, done) => {
    const location = reply.getHeader('location');
    if (typeof location === 'string') void reply.header('location', basePath + location);
    done();
  });
}

/** At info, the framework would log each address that it listens on; the daemon has logged them already. */
function withoutChatter(logger: FastifyBaseLogger): FastifyBaseLogger {
  return logger.level === 'info' ? logger.child({}, { level: 'warn' }) : logger;
}

function addApi(api: Api, deps: ApiDeps): void {
  api.addHook('onRequest', async ({ is404 }) => {
    const { migrations } = deps.readiness().checks;
    if (migrations !== 'ok' && !is404) throw unavailable('the database is not ready yet');
    return Promise.resolve();
  });
  refuseWhileObserving(api, deps.installation);
  api.addHook('preValidation', validateRequest);
  takeCallsInTurn(api);
  const prompt = { ...deps, database: deps.promptDatabase };
  const slow = { ...deps, database: deps.slowDatabase };
  addScheduleRoutes(api, deps);
  addScheduleBatchRoute(api, deps);
  addScheduleBulkRoute(api, slow);
  addFireRoute(api, prompt);
  addSkipRoutes(api, deps);
  addBackfillRoute(api, deps);
  addVersionsRoute(api, deps);
  addPreviewRoutes(api, deps);
  addOccurrencesRoute(api, slow);
  addLoadRoute(api, slow);
  addCalendarRoutes(api, deps);
  addConnectionRoutes(api, deps);
  addNotifierRoutes(api, deps);
  addRunRoutes(api, deps);
  addOneOffRunRoutes(api, deps);
  addRunActionRoutes(api, prompt);
  addRunBulkRoute(api, slow);
  addQueueRoutes(api, deps);
  addLimitRoutes(api, deps);
  addAlertRoute(api, deps);
  addStatsRoutes(api, slow);
  addInstanceRoutes(api, deps);
  addMaintenanceRoutes(api, deps);
  addObservingRoute(api, deps);
  addTakeOverRoute(api, deps);
  addVerifyRoute(api, slow);
  addAuditRoute(api, slow);
  addCallerRoutes(api, deps);
}

/**
 * One line for each request: debug, since a dashboard polls every second; warn if the server failed. The loops log once
 * that the database is away.
 */
function logRequests(server: Api): void {
  server.addHook('onResponse', async (request, reply) => {
    const line = {
      method: request.method,
      url: withoutPingKeys(request.url),
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
    };
    if (reply.statusCode >= 500 && reply.statusCode !== 503) request.log.warn(line, 'request failed');
    else request.log.debug(line, 'request');
    return Promise.resolve();
  });
}
