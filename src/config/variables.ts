import { z } from 'zod';
import { NO_SHARES, parseScopeShares, SHARES_RULE } from '../core/access/scope.ts';
import { parseFileVariables } from '../core/secrets/file-variables.ts';
import { type SecretKey, parseSecretKeys } from '../core/secrets/key-ring.ts';
import {
  type AddressRange,
  DENIED_PRESETS,
  parseAddressRanges,
  type AllowedHosts,
  parseAllowedHosts,
} from './address-ranges.ts';
import { readDatabaseUrl, tlsFiles } from './database-url.ts';
import { parseEgressProxy, BYPASS_HINT, NO_BYPASS, parseEgressBypass } from './egress-proxy.ts';
import { isDirectory, unreadable } from './start-files.ts';
import { type EntryFault, type Variable, boundedNumber, flag, list, parsed, plainText } from './variable-kinds.ts';
import { OTEL_VARIABLES } from './otel-variables.ts';
import { parseMailDomains } from '../core/alerts/texts/mail.ts';
import { isMailFrom, parseSmtpUrl } from './smtp-url.ts';

const databaseUrl: Variable<string | undefined> = {
  hint:
    'postgres://user:password@host:5432/database, or several servers of it as host1:5432,host2:5432 ' +
    '(target_session_attrs, if given: any, read-write or primary, since firelock writes)',
  schema: z
    .string()
    .superRefine((given, context) => {
      const read = readDatabaseUrl(given);
      const faults = 'faults' in read ? read.faults : unreadable(tlsFiles(read.tls));
      if ('faults' in read && faults.length === 0) context.addIssue({ code: 'custom', message: '' });
      for (const { parameter, message } of faults) context.addIssue({ code: 'custom', message, path: [parameter] });
    })
    .optional(),
};

const RANGES = 'addresses and ranges such as 10.0.0.0/8 or fd00:7::/32, separated by commas';

function ranges(
  hint: string,
  { presets = {}, standard = '' }: { presets?: Parameters<typeof parseAddressRanges>[1]; standard?: string },
  faultOf: (range: AddressRange) => string | null = () => null,
): Variable<readonly AddressRange[]> {
  const entryFaults = (range: AddressRange): EntryFault[] => {
    const message = faultOf(range);
    return message === null ? [] : [{ entry: range.text, message }];
  };
  return list<readonly AddressRange[]>(
    hint,
    (given) => {
      const [read, faults] = parseAddressRanges(given, presets);
      return [read, [...faults, ...read.flatMap(entryFaults)]];
    },
    [],
    standard,
  );
}

/** Who is at an address of the range is believed: so a range may not hold half of the Internet. */
function tooWideForProxies({ bytes, prefix }: AddressRange): string | null {
  const smallest = bytes.length === 4 ? 8 : 16;
  return prefix >= smallest ? null : `holds too many addresses: at least /${smallest}`;
}

/** Every variable that this version knows. Names are those of the documentation and of .env.example. */
export const VARIABLES = {
  DATABASE_URL: { ...databaseUrl, hint: `${databaseUrl.hint}; absent: an embedded PostgreSQL` },
  FIRELOCK_MIGRATION_DATABASE_URL: {
    ...databaseUrl,
    hint: `${databaseUrl.hint}: for migrations only, where DATABASE_URL is of a role that may not change the schema, or goes through a pooler`,
  },
  FIRELOCK_DATA_DIR: {
    hint: 'a folder for the embedded PostgreSQL (default .firelock)',
    schema: z.string().min(1).default('.firelock'),
  },
  HOST: {
    hint: 'an address or name to listen on (default 127.0.0.1)',
    schema: z
      .string()
      .regex(/^[\w.:%-]+$/)
      .default('127.0.0.1'),
  },
  PORT: boundedNumber(0, 65535, 'a TCP port', 8080),
  FIRELOCK_BASE_PATH: {
    hint:
      'what stands before every path, such as /cron: it begins with /, ends without one, and holds letters, digits, dots, ' +
      'dashes, underscores and tildes (default: nothing)',
    schema: z
      .string()
      .max(200)
      .regex(/^(\/(?!\.{1,2}(\/|$))[\w.~-]+)+$/)
      .default(''),
  },
  LOG_LEVEL: {
    hint: 'fatal, error, warn, info, debug, trace or silent (default info)',
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  },
  FIRELOCK_TICK_INTERVAL_MS: boundedNumber(10, 60_000, 'milliseconds', 1000),
  FIRELOCK_LOCK_TTL_SECONDS: boundedNumber(5, 3600, 'seconds', 120),
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: boundedNumber(1, 60, 'seconds', 2),
  FIRELOCK_INSTANCE_TTL_SECONDS: boundedNumber(4, 600, 'seconds', 10),
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: boundedNumber(1, 3600, 'seconds', 5),
  FIRELOCK_LOST_AFTER_SECONDS: boundedNumber(1, 86_400, 'seconds', 300),
  FIRELOCK_MAX_RECOVERIES: boundedNumber(0, 1000, 'recoveries of a run', 3),
  FIRELOCK_MAX_RECOVERY_AGE_SECONDS: boundedNumber(1, 31_622_400, 'seconds', 86_400),
  FIRELOCK_DISPATCH_CONCURRENCY: boundedNumber(1, 10_000, 'handoffs at once', 256),
  FIRELOCK_DISPATCH_PER_HOST: boundedNumber(1, 10_000, 'handoffs at once to one target host', 64),
  FIRELOCK_SCOPES: list(`${SHARES_RULE} (default: no scopes)`, parseScopeShares, NO_SHARES),
  FIRELOCK_DATABASE_POOL: boundedNumber(2, 200, 'connections', 10),
  FIRELOCK_RETENTION_DAYS: boundedNumber(1, 36_500, 'days', 30),
  FIRELOCK_RUN_LOG_KIB: boundedNumber(0, 16_384, 'KiB of the log of each attempt', 1024),
  FIRELOCK_SHUTDOWN_SECONDS: boundedNumber(0, 3600, 'seconds', 30),
  FIRELOCK_TARGET_DENY_CIDRS: ranges(`${RANGES}; "default" and "strict" stand for lists of them (default default)`, {
    presets: DENIED_PRESETS,
    standard: 'default',
  }),
  FIRELOCK_TARGET_ALLOW_CIDRS: ranges(`${RANGES} (default none)`, {}),
  FIRELOCK_EGRESS_PROXY: parsed(
    'http://[user:password@]host:port of a proxy through which targets are called (default none)',
    parseEgressProxy,
  ),
  FIRELOCK_EGRESS_PROXY_BYPASS: list(BYPASS_HINT, parseEgressBypass, NO_BYPASS),
  FIRELOCK_METRICS_PORT: {
    hint:
      'a TCP port: a whole number from 0 to 65535, for /metrics, /healthz and /readyz, which are then not on PORT ' +
      '(default: none)',
    schema: z
      .string()
      .regex(/^\d{1,5}$/)
      .transform(Number)
      .pipe(z.number().max(65_535))
      .optional(),
  },
  FIRELOCK_API_TOKENS: plainText('name:role:sha256hex[:expires] of each token, comma-separated'),
  FIRELOCK_API_TOKENS_FILE: plainText('a file of such lines, which is read again on SIGHUP'),
  FIRELOCK_TOKEN_REQUESTS_PER_SECOND: boundedNumber(1, 1_000_000, 'requests of one token', 1000),
  FIRELOCK_TRUSTED_PROXY_CIDRS: ranges(
    `${RANGES}: of proxies whose X-Firelock-User, X-Firelock-Role and X-Firelock-Scope are believed (default none)`,
    {},
    tooWideForProxies,
  ),
  FIRELOCK_ALLOWED_HOSTS: list<AllowedHosts>(
    'names of hosts, addresses and ranges such as cron.internal or 10.0.0.0/8, separated by commas, without ports: what ' +
      '`Host` may name, as long as there are no tokens, beside localhost, loopback addresses and HOST (default none)',
    parseAllowedHosts,
    { names: [], ranges: [] },
  ),
  FIRELOCK_SCHEDULES_FILE: plainText(
    'a file of schedules, calendars, limits, connections and notifiers that is applied at the start (default none)',
  ),
  FIRELOCK_FILE_VARIABLES: list<readonly string[]>(
    'names of variables that a schedules file may use, separated by commas (default none)',
    parseFileVariables,
    [],
  ),
  /** No fault repeats text that may be a key. */
  FIRELOCK_SECRET_KEYS: list<readonly SecretKey[]>(
    'keyId:base64 of 32 bytes, comma-separated; the first encrypts (default none)',
    parseSecretKeys,
    [],
  ),
  FIRELOCK_SECRETS_DIR: {
    hint: 'a directory that is there, of files with secrets that connections and bodies may name (default none)',
    schema: z.string().refine(isDirectory).optional(),
  },
  FIRELOCK_ALLOW_ANONYMOUS: flag(
    '1: answer anybody on an address that is not loopback, or below a base path, as long as there are no tokens',
  ),
  FIRELOCK_OBSERVE: flag('1: plan nothing, send nothing and write nothing, and answer reads (docs/restoring.md)'),
  FIRELOCK_SMTP_URL: parsed(
    'smtp://[user:password@]host[:port], or smtps:// for TLS from the first byte on, of a server that takes mail of notifiers, ' +
      'with ?requireTLS= and ?tls.rejectUnauthorized= true or false (default none)',
    (text) => {
      const read = parseSmtpUrl(text);
      return 'server' in read ? read.server : read;
    },
  ),
  FIRELOCK_MAIL_FROM: {
    hint: 'an address such as cron@example.com, or "firelock <cron@example.com>": whom mail is from (default none)',
    schema: z.string().max(320).refine(isMailFrom).optional(),
  },
  FIRELOCK_MAIL_TO_DOMAINS: list(
    'domains such as example.com, or .example.com for all below it, separated by commas (default: any)',
    parseMailDomains,
    [],
  ),
  FIRELOCK_PUBLIC_URL: parsed(
    'http(s)://host[:port][/path] under which people reach the dashboard, base path included: messages of notifiers link to it ' +
      '(default none: they have no links)',
    (text) => {
      const url = text.length > 2_000 ? null : URL.parse(text);
      const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === '';
      return isPlain ? url.href.replace(/\/$/, '') : null;
    },
  ),
  ...OTEL_VARIABLES,
} satisfies Record<string, Variable<unknown>>;

/** Variables of programs that call the daemon; it may find them in its environment, and does not use them. */
export const OF_CALLERS = ['FIRELOCK_URL', 'FIRELOCK_TOKEN'];

/** Variables that this version refuses: a user who sets one would rely on it, and it would do nothing. */
export const NOT_SUPPORTED_YET = ['FIRELOCK_PG_TARGETS'];
