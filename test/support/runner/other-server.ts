import type { TestProject } from 'vitest/node';
import { startPostgres } from '../../../scripts/support/postgres-server.ts';
import { makeTemplates } from '../postgres/cluster.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of the server that a project has for itself. */
    postgresMajor?: number;
  }
}

/** A server of another version, which takes the place of the run's own in the tests of one project. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { postgresMajor = NaN } = project.getProvidedContext();
  const server = await startPostgres(postgresMajor, { from: 'packaged', durable: false });
  project.provide('postgresUrl', server.url);
  project.provide('templates', await makeTemplates(server.url));
  return () => server.stop();
}
