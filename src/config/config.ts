import { isIP } from 'node:net';
import type { z } from 'zod';
import type { ApiToken } from '../core/access/token.ts';
import { type TokenSources, readApiTokens } from './start-files.ts';
import { tracesFaults, tracesOf } from './otel-variables.ts';
import { NOT_SUPPORTED_YET, OF_CALLERS, VARIABLES } from './variables.ts';

type Name = keyof typeof VARIABLES;
type Values = { [N in Name]: z.output<(typeof VARIABLES)[N]['schema']> };

export type Config = ReturnType<typeof named>;

/** The whole configuration, or every fault of it, each with a hint. */
export function readConfig(env: NodeJS.ProcessEnv): { config: Config } | { faults: string[] } {
  // An empty variable counts as absent: compose files and shells write it for a variable that is not set.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const faults = foreignVariables(given);
  const values: Partial<Values> & Record<string, unknown> = {};
  for (const [name, { schema, hint }] of Object.entries(VARIABLES)) {
    const parsed = schema.safeParse(given[name]);
    if (parsed.success) values[name] = parsed.data;
    else faults.push(`${name} ${faultOf(name, given[name], hint, parsed.error)}`);
  }
  faults.push(...faultsTogether(values), ...tracesFaults(values));
  const read = readApiTokens(sourcesOf(values));
  if ('faults' in read) return { faults: [...faults, ...read.faults] };
  if (faults.length > 0) return { faults };
  return { config: named(values as Values, read.tokens) };
}

function sourcesOf(values: Partial<Values>): TokenSources {
  return { list: values.FIRELOCK_API_TOKENS, file: values.FIRELOCK_API_TOKENS_FILE };
}

// oxlint-disable-next-line max-lines-per-function -- a line for each variable
function named(values: Values, apiTokens: readonly ApiToken[]) {
  return {
    databaseUrl: values.DATABASE_URL,
    migrationDatabaseUrl: values.FIRELOCK_MIGRATION_DATABASE_URL,
    dataDir: values.FIRELOCK_DATA_DIR,
    host: values.HOST,
    port: values.PORT,
    /** The prefix of every path; empty: none. */
    basePath: values.FIRELOCK_BASE_PATH,
    /** The port of `/metrics`, `/healthz` and `/readyz`, if not `port`. */
    metricsPort: values.FIRELOCK_METRICS_PORT,
    tokenSources: sourcesOf(values),
    /** The tokens at the start. */
    apiTokens,
    tokenRequestsPerSecond: values.FIRELOCK_TOKEN_REQUESTS_PER_SECOND,
    trustedProxies: values.FIRELOCK_TRUSTED_PROXY_CIDRS,
    /** Without tokens: what a `Host` may name beside the machine itself and `host`. */
    allowedHosts: values.FIRELOCK_ALLOWED_HOSTS,
    /** The API does not ask callers who they are, and not only this machine can call, or a proxy may pass calls on. */
    isOpenToAnybody: !asksWhoCalls(values) && (!isLoopback(values.HOST) || values.FIRELOCK_BASE_PATH !== ''),
    logLevel: values.LOG_LEVEL,
    tickIntervalMs: values.FIRELOCK_TICK_INTERVAL_MS,
    lockTtlSeconds: values.FIRELOCK_LOCK_TTL_SECONDS,
    heartbeatIntervalSeconds: values.FIRELOCK_HEARTBEAT_INTERVAL_SECONDS,
    instanceTtlSeconds: values.FIRELOCK_INSTANCE_TTL_SECONDS,
    recoveryIntervalSeconds: values.FIRELOCK_RECOVERY_INTERVAL_SECONDS,
    lostAfterSeconds: values.FIRELOCK_LOST_AFTER_SECONDS,
    maxRecoveries: values.FIRELOCK_MAX_RECOVERIES,
    maxRecoveryAgeSeconds: values.FIRELOCK_MAX_RECOVERY_AGE_SECONDS,
    dispatchConcurrency: values.FIRELOCK_DISPATCH_CONCURRENCY,
    dispatchPerHost: values.FIRELOCK_DISPATCH_PER_HOST,
    scopeShares: values.FIRELOCK_SCOPES,
    /** This instance writes nothing, whatever the database says. */
    observe: values.FIRELOCK_OBSERVE,
    databasePool: values.FIRELOCK_DATABASE_POOL,
    /** The planner makes no run for an older occurrence. */
    retentionDays: values.FIRELOCK_RETENTION_DAYS,
    /** Of each attempt; 0: none. */
    runLogKib: values.FIRELOCK_RUN_LOG_KIB,
    shutdownSeconds: values.FIRELOCK_SHUTDOWN_SECONDS,
    /** The file that is applied at the start. */
    schedulesFile: values.FIRELOCK_SCHEDULES_FILE,
    /** Names of the environment variables that it may use. */
    fileVariables: values.FIRELOCK_FILE_VARIABLES,
    /** Addresses that no target may have, unless the second list allows them. */
    targetDenied: values.FIRELOCK_TARGET_DENY_CIDRS,
    targetAllowed: values.FIRELOCK_TARGET_ALLOW_CIDRS,
    /** Null: targets are called directly. */
    egressProxy: values.FIRELOCK_EGRESS_PROXY
      ? { ...values.FIRELOCK_EGRESS_PROXY, bypass: values.FIRELOCK_EGRESS_PROXY_BYPASS }
      : null,
    /** The first encrypts header values and secrets of targets, all decrypt. */
    secretKeys: values.FIRELOCK_SECRET_KEYS,
    /** The directory of the files that connections may name; null: none. */
    secretsDir: values.FIRELOCK_SECRETS_DIR ?? null,
    /** Null: firelock sends no mail. */
    mail:
      values.FIRELOCK_SMTP_URL && values.FIRELOCK_MAIL_FROM
        ? { server: values.FIRELOCK_SMTP_URL, from: values.FIRELOCK_MAIL_FROM }
        : null,
    /** Where mail may go; none: anywhere. */
    mailToDomains: values.FIRELOCK_MAIL_TO_DOMAINS,
    /** Where people reach the dashboard, without a slash at the end; null: messages have no links. */
    publicUrl: values.FIRELOCK_PUBLIC_URL ?? null,
    /** Where spans go; undefined: firelock makes no traces. */
    traces: tracesOf(values),
  };
}

/** Faults of variables together, each of which is right by itself. A variable that is wrong by itself is not in `values`. */
function faultsTogether(values: Partial<Values>): string[] {
  const faults = openFaults(values);
  const { PORT: port, FIRELOCK_METRICS_PORT: metricsPort } = values;
  if (metricsPort !== undefined && metricsPort !== 0 && metricsPort === port) {
    faults.push(`FIRELOCK_METRICS_PORT is ${metricsPort}, as PORT is; expected: another port`);
  }
  faults.push(...mailFaults(values));
  const { FIRELOCK_INSTANCE_TTL_SECONDS: ttl, FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: interval } = values;
  if (ttl !== undefined && interval !== undefined && ttl < 2 * interval + 2) {
    faults.push(
      `FIRELOCK_INSTANCE_TTL_SECONDS is ${ttl}; expected: at least 2 × FIRELOCK_HEARTBEAT_INTERVAL_SECONDS (${interval}) + 2`,
    );
  }
  return faults;
}

function mailFaults(values: Partial<Values>): string[] {
  // One that is wrong by itself is there with undefined neither: then it has a fault already.
  if (!('FIRELOCK_SMTP_URL' in values && 'FIRELOCK_MAIL_FROM' in values)) return [];
  const { FIRELOCK_SMTP_URL: server, FIRELOCK_MAIL_FROM: from } = values;
  if ((server === undefined) === (from === undefined)) return [];
  const [set, missing] =
    from === undefined ? ['FIRELOCK_SMTP_URL', 'FIRELOCK_MAIL_FROM'] : ['FIRELOCK_MAIL_FROM', 'FIRELOCK_SMTP_URL'];
  return [`${missing} is missing, and ${set} is set; expected: both, or neither`];
}

/** Without tokens, only this machine may reach the API, unless it is said that all who can may. */
function openFaults(values: Partial<Values>): string[] {
  const { HOST: host, FIRELOCK_BASE_PATH: basePath, FIRELOCK_ALLOW_ANONYMOUS: allowAnonymous } = values;
  if (allowAnonymous !== false || asksWhoCalls(values)) return [];
  const expected =
    'FIRELOCK_API_TOKENS or FIRELOCK_API_TOKENS_FILE (`firelock token create NAME --role admin` makes a token), ' +
    'or FIRELOCK_ALLOW_ANONYMOUS=1 where the network is guarded otherwise';
  const faults: string[] = [];
  if (host !== undefined && !isLoopback(host))
    faults.push(
      `HOST is ${host}, and without tokens firelock answers anybody who reaches it; expected: a loopback address, or ${expected}`,
    );
  if (basePath !== undefined && basePath !== '')
    faults.push(
      `FIRELOCK_BASE_PATH is ${basePath}, for a proxy, and without tokens firelock lets all clients of the proxy do ` +
        `everything; expected: ${expected}`,
    );
  return faults;
}

function foreignVariables(given: Record<string, string | undefined>): string[] {
  const known = [...Object.keys(VARIABLES), ...OF_CALLERS];
  return Object.keys(given)
    .filter((name) => name.startsWith('FIRELOCK_') && !known.includes(name))
    .map((name) =>
      NOT_SUPPORTED_YET.includes(name)
        ? `${name} is not supported by this version; unset it`
        : `${name} is not a variable of firelock; known: ${Object.keys(VARIABLES).join(', ')}`,
    );
}

/** A variable that is wrong by itself counts as set: it has a fault already. */
function asksWhoCalls(values: Partial<Values>): boolean {
  const { list, file } = sourcesOf(values);
  const proxies = values.FIRELOCK_TRUSTED_PROXY_CIDRS;
  return list !== undefined || file !== undefined || proxies === undefined || proxies.length > 0;
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function faultOf(name: string, value: string | undefined, hint: string, error: z.ZodError): string {
  const entries = entryFaults(error);
  // It is a URL, and every fault says what is expected.
  if (name.endsWith('DATABASE_URL') && entries !== '')
    return `has what firelock cannot follow${entries.replace(';', ':')}`;
  return `is ${shown(name, value)}; expected: ${hint}${entries}`;
}

/** The faults of a list, entry by entry. */
function entryFaults({ issues }: z.ZodError): string {
  return issues
    .filter(({ path }) => path.length > 0)
    .map(({ path, message }) => `; ${JSON.stringify(path[0])} ${message}`)
    .join('');
}

/** Keeps passwords and keys out of terminals and logs. */
function shown(name: string, value: string | undefined): string {
  if (name === 'FIRELOCK_EGRESS_PROXY') return 'not a URL of a proxy';
  if (name === 'FIRELOCK_SMTP_URL') return 'not a URL of a mail server';
  if (name === 'FIRELOCK_SECRET_KEYS') return 'not a list of keys';
  if (name.endsWith('_HEADERS')) return 'not a list of headers';
  return name.endsWith('DATABASE_URL') ? 'not a URL of PostgreSQL' : JSON.stringify(value ?? '');
}
