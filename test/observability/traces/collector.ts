import { once } from 'node:events';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { Span } from '../../../src/observability/traces/otlp.ts';

interface Call {
  path: string | undefined;
  headers: IncomingHttpHeaders;
  spans: Span[];
  /** Of the resource. */
  attributes: Record<string, unknown>;
}

interface Request {
  resourceSpans: { resource: { attributes: Span['attributes'] }; scopeSpans: { spans: Span[] }[] }[];
}

/** A collector that notes what it gets, and answers what it is told to. */
export async function startCollector() {
  const calls: Call[] = [];
  const answer = { status: 200, body: '{}' };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { resourceSpans } = JSON.parse(body) as Request;
      const { url: path, headers } = request;
      const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
      const attributes = attributesOf(resourceSpans[0]?.resource ?? { attributes: [] });
      calls.push({ path, headers, spans, attributes });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, calls, answer, spans: () => calls.flatMap(({ spans }) => spans) };
}

/** By name, without their types. */
export function attributesOf({ attributes }: Pick<Span, 'attributes'>): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
