import type { Api } from '../../deps.ts';

/**
 * For browsers, on every answer that does not say otherwise itself: none is anything but what its type says, none is shown in a frame of
 * another page or read by one, and no link tells others where it came from. A page says itself what it may load (openapi.ts). An answer may
 * be for a caller with a token, and is old the moment after.
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
