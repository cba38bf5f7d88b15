import type { IncomingHttpHeaders } from 'node:http';
import { onTestFinished } from 'vitest';
import type { Span } from '../../../src/observability/traces.ts';
import { serveHttp, withBody } from '../../support/loopback.ts';

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
  const note = withBody(({ url: path, headers }, body, response) => {
    const { resourceSpans } = JSON.parse(body) as Request;
    const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    const attributes = attributesOf(resourceSpans[0]?.resource ?? { attributes: [] });
    calls.push({ path, headers, spans, attributes });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  });
  const { url, close } = await serveHttp(note);
  onTestFinished(close);
  return { url, calls, answer, spans: () => calls.flatMap(({ spans }) => spans) };
}

/** By name, without their types. */
export function attributesOf({ attributes }: Pick<Span, 'attributes'>): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
