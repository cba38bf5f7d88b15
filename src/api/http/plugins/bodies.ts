import type { FastifyRequest } from 'fastify';
import type { Api } from '../../deps.ts';
import { type JsonBody, parseJsonBody } from '../json/json-body.ts';
import { Problem } from '../problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it was sent; null: there is none. */
    json: JsonBody | null;
  }
}

export const BODY_LIMIT = 256 * 1024;
export const BATCH_BODY_LIMIT = 16 * 1024 * 1024;

/** Bodies are JSON in UTF-8, parsed by our own parser so that payloads keep their text; everything else is 415. */
export function acceptJsonBodies(server: Api): void {
  server.decorateRequest('json', null);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<Buffer>(
    ['application/json', 'application/merge-patch+json'],
    { parseAs: 'buffer' },
    async (request: FastifyRequest, bytes: Buffer): Promise<unknown> => {
      refuseOtherCharsets(request);
      refuseOtherEncodings(request);
      request.json = bytes.length === 0 ? null : await parseJsonBody(bytes);
      return request.json?.value;
    },
  );
}

/** @throws Problem 415 */
export function refuseOtherEncodings({ headers }: FastifyRequest): void {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity')
    throw new Problem(415, 'the body must not be compressed');
}

function refuseOtherCharsets(request: FastifyRequest): void {
  const { 'content-type': type = '' } = request.headers;
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1] ?? 'utf-8';
  if (!/^utf-?8$/i.test(charset)) throw new Problem(415, 'the body must be UTF-8');
  if (/^\s*application\/merge-patch\+json/i.test(type) && request.method !== 'PATCH') {
    throw new Problem(415, 'a merge patch goes with PATCH; the body must be application/json');
  }
}
