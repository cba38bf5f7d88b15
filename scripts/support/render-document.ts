import { pino } from 'pino';
import { type ApiDeps, ANSWER_LIMITS } from '../../src/api/deps.ts';
import { createAccess } from '../../src/api/access/access.ts';
import { standardLimits } from '../../src/api/http/plugins/strangers.ts';
import { createServer } from '../../src/api/server.ts';
import { WORKS } from '../../src/core/installation.ts';
import { NO_SHARES } from '../../src/core/access/scope.ts';
import { NO_CAPS } from '../../src/operations/scope-caps.ts';
import { createKeyRing } from '../../src/core/secrets/key-ring.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { createTargetRegistry } from '../../src/targets/target.ts';
import manifest from '../../package.json' with { type: 'json' };

/** From the routes; needs neither a database nor a network. */
export async function renderDocument(): Promise<string> {
  const noDatabase = () => Promise.reject(new Error('there is no database here'));
  const database = { run: noDatabase, transaction: noDatabase, close: () => Promise.resolve() };
  const events = createEventBus();
  const nobodyIsAsked = { apiTokens: [], trustedProxies: [], tokenRequestsPerSecond: 1 };
  const deps: ApiDeps = {
    access: createAccess({ clock: systemClock, events, ...nobodyIsAsked }),
    connectionLimits: standardLimits(() => false),
    answerLimits: ANSWER_LIMITS,
    browserRules: () => null,
    hasSignsElsewhere: false,
    database,
    promptDatabase: database,
    slowDatabase: database,
    clock: systemClock,
    targets: createTargetRegistry([]),
    secrets: createKeyRing([]),
    takesSecretFiles: true,
    sendsMail: true,
    mailToDomains: [],
    events,
    wake: {
      effects: () => undefined,
      dispatch: () => undefined,
      workers: () => undefined,
      admission: () => undefined,
      alerts: () => undefined,
    },
    pullQueues: { claim: noDatabase, isStopping: () => false },
    logFollowers: { wait: noDatabase, read: noDatabase, isStopping: () => false },
    runLogKib: 1024,
    scopeShares: NO_SHARES,
    openRunCaps: NO_CAPS,
    retentionDays: 30,
    basePath: '',
    learnInstallation: () => undefined,
    installation: () => ({ ...WORKS, because: 'database', isReadOnly: false }),
    takeOver: noDatabase,
    readiness: () => ({ status: 'unavailable', checks: {}, warnings: [] }),
    metrics: { contentType: 'text/plain', text: () => Promise.resolve('') },
    dashboard: null,
    version: manifest.version,
    logger: pino({ level: 'silent' }),
  };
  const server = await createServer(deps);
  const text = JSON.stringify(server.swagger(), null, 2);
  await server.close();
  return `${text}\n`;
}
