import type { TestProject } from 'vitest/node';
import { makeTemplates, startCluster } from './cluster.ts';

/** One server for the whole run, thrown away in the end. FIRELOCK_TEST_DATABASE_URL names another to use instead. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['FIRELOCK_TEST_DATABASE_URL'];
  if (given !== undefined && given !== '') {
    project.provide('postgresUrl', given);
    project.provide('templates', null);
    return () => Promise.resolve();
  }
  const cluster = await startCluster();
  project.provide('postgresUrl', cluster.url);
  project.provide('templates', await makeTemplates(cluster.url));
  return () => cluster.stop();
}
