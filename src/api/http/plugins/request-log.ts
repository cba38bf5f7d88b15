import type { Api } from '../../deps.ts';

/**
 * One line for each request: debug, since a dashboard polls every second; warn if the server failed. The loops log once
 * that the database is away.
 */
export function logRequests(server: Api): void {
  server.addHook('onResponse', async (request, reply) => {
    const line = {
      method: request.method,
      url: request.url,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
    };
    if (reply.statusCode >= 500 && reply.statusCode !== 503) request.log.warn(line, 'request failed');
    else request.log.debug(line, 'request');
    return Promise.resolve();
  });
}
