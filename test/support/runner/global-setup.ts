import type { TestProject } from 'vitest/node';
// What tests import of the client.
import '../../../scripts/client.ts';
import { dropTemplates, makeTemplates } from '../postgres/cluster.ts';
import { THROUGH_POOLER } from '../postgres/pooler.ts';
import { startPostgresProxy } from '../postgres/postgres-proxy.ts';
import { makeUnstarted, startCluster } from '../postgres/server.ts';
import { daemonBundle } from './daemon-bundle.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** What `node` runs to start a daemon. */
    daemonMain: string;
  }
}

/**
 * One server for the whole run, thrown away in the end. FIRELOCK_TEST_DATABASE_URL names another to use instead; it gets
 * its databases back. FIRELOCK_TEST_DATABASE_DELAY_MS makes each round trip to it so much longer.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['FIRELOCK_TEST_DATABASE_URL'];
  const [daemonMain, unstarted] = await Promise.all([daemonBundle(), makeUnstarted()]);
  const cluster = given === undefined || given === '' ? await startCluster({ from: unstarted.path }) : null;
  project.provide('daemonMain', daemonMain);
  project.provide('unstarted', unstarted.path);
  // Where vitest watches, sources change between two runs.
  project.onTestsRerun(async () => project.provide('daemonMain', await daemonBundle()));
  const direct = cluster?.url ?? given ?? '';
  const delayMs = Number(process.env['FIRELOCK_TEST_DATABASE_DELAY_MS'] ?? 0);
  const way = delayMs > 0 ? await startPostgresProxy(direct, { delayMs }) : null;
  const url = way?.url ?? direct;
  project.provide('postgresUrl', url);
  // A pooler keeps sessions open, and what a session has open cannot be copied.
  const templates = THROUGH_POOLER ? null : await makeTemplates(url);
  project.provide('templates', templates);
  return async () => {
    await unstarted.remove();
    await way?.close();
    if (cluster !== null) await cluster.stop();
    else if (templates !== null) await dropTemplates(direct, templates);
  };
}
