import { createServer } from 'node:https';
import { onTestFinished } from 'vitest';
import type { createAuthority } from './certificates.ts';
import { listenOnLoopback } from './loopback.ts';

/** A server that answers who shows a certificate of this authority; `seen` has the name of each, a connection at a time. */
export async function askingForCertificates(
  authority: ReturnType<typeof createAuthority>,
): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer(
    { ...authority.issue('server'), ca: authority.ca, requestCert: true, rejectUnauthorized: true },
    (_, response) => response.end('{}'),
  );
  server.on('secureConnection', (socket) => seen.push(String(socket.getPeerCertificate().subject.CN)));
  const port = await listenOnLoopback(server);
  onTestFinished(() => void server.close());
  return { url: `https://127.0.0.1:${port}`, seen };
}
