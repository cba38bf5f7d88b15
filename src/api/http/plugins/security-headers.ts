import type { Api } from '../../deps.ts';

/**
 * Headers for browsers, on every answer that does not set them itself. A browser must not guess the type of an answer,
 * show it in a frame of another page, let another page read it, or tell other sites where a link came from. A page says
 * itself what it may load (openapi.ts). Nothing is cached: an answer may be meant for a caller with a token, and is out
 * of date a moment later.
 */
export const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
} as const;

export function addSecurityHeaders(server: Api): void {
  server.addHook('onSend', (_request, reply, _payload, done) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS))
      if (!reply.hasHeader(name)) void reply.header(name, value);
    done();
  });
}
