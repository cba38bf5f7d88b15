import { onTestFinished } from 'vitest';
import { type Answer, type NameServer, type Question, openNameServer } from './open-name-server.ts';

/** A name server for one test. */
export async function startNameServer(answer: (question: Question) => Answer): Promise<NameServer> {
  const server = await openNameServer(answer);
  onTestFinished(() => server.close());
  return server;
}
