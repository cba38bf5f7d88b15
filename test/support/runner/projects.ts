import type { TestProjectConfiguration } from 'vitest/config';

/** Where the database decides. */
const ON_THE_DATABASE = ['postgres', 'store', 'flow', 'operations', 'queues', 'recovery', 'history'];

/**
 * FIRELOCK_TEST_POSTGRES=14: in the same run, the tests of these folders have a server of that major version, which npm fetches, and all
 * others the usual one.
 */
export function projectsOf(major = ''): { projects?: TestProjectConfiguration[] } {
  if (major === '') return {};
  const folders = ON_THE_DATABASE.join('|');
  return {
    projects: [
      { extends: true, test: { name: 'the usual PostgreSQL', exclude: [`test/@(${folders})/**`] } },
      {
        extends: true,
        test: {
          name: `PostgreSQL ${major}`,
          exclude: ['test/*.test.ts', `test/!(${folders})/**`],
          globalSetup: ['test/support/runner/other-server.ts'],
          provide: { postgresMajor: Number(major) },
        },
      },
    ],
  };
}
