import { type Config, isLoopback } from '../config/config.ts';
import { hostText, parseDatabaseUrl } from '../config/database-url.ts';
import type { Logger } from '../observability/log/logger.ts';

/** Says in the log which database this is, and what an operator should know of it. `local`: what runs, if it is the embedded one. */
export function announceDatabase(
  { databaseUrl, local }: { databaseUrl: string; local: string | null },
  { host, migrationDatabaseUrl = databaseUrl }: Config,
  logger: Logger,
): void {
  logger.info(local ?? `PostgreSQL at ${serversOf(databaseUrl)}`);
  // Others are to call it.
  if (local !== null && !isLoopback(host))
    logger.warn(
      'the PostgreSQL is embedded: one machine without a standby, for trials, not for production; set DATABASE_URL',
    );
  for (const url of new Set([databaseUrl, migrationDatabaseUrl])) {
    const { ignored = [] } = parseDatabaseUrl(url) ?? {};
    if (ignored.length > 0)
      logger.warn(
        { ignored: ignored.map(({ parameter, message }) => `${parameter}: ${message}`) },
        'parameters in the URL of the database have no effect',
      );
  }
}

function serversOf(databaseUrl: string): string {
  const { hosts = [], database } = parseDatabaseUrl(databaseUrl) ?? {};
  return `${hosts.map(hostText).join(',')}${database === undefined ? '' : `/${database}`}`;
}
