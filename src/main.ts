#!/usr/bin/env node
/**
 * The process: Node's version, configuration, signals, exit code. Everything else is imported after the check of the
 * version.
 */
import { readFileSync } from 'node:fs';
import type { Config } from './config/config.ts';
import type { Daemon } from './daemon/daemon.ts';
import type { Logger } from './observability/log/logger.ts';
import type { Clock } from './runtime/clock.ts';
import type { DaemonCommands, DatabaseWork } from './cli/surroundings.ts';

interface Package {
  version: string;
  engines: { node: string };
}

const { version, engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Package;

const args = process.argv.slice(2);
if (isTooOld(process.versions.node, engines.node) && !asksForHelp(args)) {
  fail(
    `firelock needs Node ${engines.node}; this is ${process.versions.node} (install a newer one, or let npm bring it: ` +
      'npx --package=node@24 --package=firelock firelock; in a clone, npm start does)',
  );
} else if (args.length === 0) {
  // The daemon starts without reading a single file of the commands.
  void configured(serve);
} else {
  void command();
}

/** Every command but the bare `firelock`; src/cli has them. */
async function command(): Promise<void> {
  const [{ runCommand }, { processSurroundings }] = await Promise.all([
    import('./cli/program.ts'),
    import('./cli/surroundings.ts'),
  ]);
  const { systemClock } = await import('./runtime/clock.ts');
  const daemon: DaemonCommands = {
    serve: () => configured(serve),
    onDatabase: (work) => configured((config, logger) => onDatabase(config, logger, work)),
  };
  process.exitCode = await runCommand(args, processSurroundings({ clock: systemClock, version, daemon }));
}

/** Runs work that needs the configuration and the log of the daemon; answers the exit code. */
async function configured(run: (config: Config, logger: Logger) => Promise<number>): Promise<number> {
  const { readConfig } = await import('./config/config.ts');
  const read = readConfig(process.env);
  if ('faults' in read) {
    fail(['firelock cannot start with this configuration:', ...read.faults.map((fault) => `  ${fault}`)].join('\n'));
    return 1;
  }
  const { createLogger } = await import('./observability/log/logger.ts');
  const logger = createLogger(read.config.logLevel, process.stdout);
  process.on('uncaughtException', (error) => {
    logger.fatal(
      { err: error },
      'an internal error of firelock; the process ends, and other instances take over its work',
    );
    process.exit(1);
  });
  try {
    return await run(read.config, logger);
  } catch (error) {
    logger.fatal(explained(error, read.config));
    process.exit(1);
  }
}

async function serve(config: Config, logger: Logger): Promise<number> {
  const { systemClock } = await import('./runtime/clock.ts');
  let daemon: Daemon | undefined;
  const hangUps = { before: 0 };
  const reread = () => (daemon ? daemon.rereadTokens() : (hangUps.before += 1));
  const stopping = stopSignal(logger, systemClock, config.tokenSources.file === undefined ? null : reread);
  const local = config.databaseUrl === undefined ? await startLocalPostgres(config, logger, systemClock) : undefined;
  const databaseUrl = local?.url ?? config.databaseUrl;
  if (databaseUrl === undefined) throw new Error('there is no database');
  const { announceDatabase } = await import('./daemon/announce-database.ts');
  announceDatabase({ databaseUrl, local: local?.whatRuns ?? null }, config, logger);

  const { giveMemoryBack, prepareForBursts } = await import('./runtime/engine.ts');
  prepareForBursts();
  const { createDaemon } = await import('./daemon/daemon.ts');
  giveMemoryBack();
  try {
    daemon = createDaemon({
      ...{ config: { ...config, secretKeys: keysOf(config, local) }, databaseUrl, version, logger },
      ...endingsOf(logger),
    });
    // The file changed after it had been read, while PostgreSQL started.
    if (hangUps.before > 0) daemon.rereadTokens();
    const { url, signsUrl } = await daemon.start();
    const base = `${url}${config.basePath}`;
    logger.info(
      `firelock ${version} listens on ${url} (dashboard ${base}/, API ${base}/api/v1, its documentation ${base}/docs)`,
    );
    if (signsUrl !== null) logger.info(`/metrics, /healthz and /readyz are on ${signsUrl}${config.basePath}`);
    await stopping;
  } finally {
    await daemon?.stop();
    await local?.stop();
  }
  logger.flush();
  process.exit(0);
}

/** Errors that end the process at once; a supervisor should start another one. */
function endingsOf(logger: Logger) {
  const end = (lines: readonly string[]) => {
    for (const line of lines) logger.fatal(line);
    process.exit(1);
  };
  return {
    onStuck: (reason: string) => end([reason]),
    onRefused: end,
  };
}

/** Answers on standard output, and by the exit code; the log only gets failures. */
async function onDatabase(config: Config, logger: Logger, work: DatabaseWork): Promise<number> {
  if (logger.isLevelEnabled('warn')) logger.level = 'error';
  const { systemClock } = await import('./runtime/clock.ts');
  const { printable } = await import('./cli/terminal/shown-text.ts');
  const interrupted = new AbortController();
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.once(signal, () => interrupted.abort());
  const local = config.databaseUrl === undefined ? await startLocalPostgres(config, logger, systemClock) : undefined;
  try {
    return await work({
      ...config,
      databaseUrl: local?.url ?? config.databaseUrl ?? '',
      secretKeys: keysOf(config, local),
      signal: interrupted.signal,
      print: (line) => void process.stdout.write(`${printable(line)}\n`),
    });
  } finally {
    await local?.stop();
  }
}

/** The configured keys come first: their first one encrypts. */
function keysOf({ secretKeys }: Config, local: Pick<Config, 'secretKeys'> | undefined): Config['secretKeys'] {
  return [...secretKeys, ...(local?.secretKeys ?? [])];
}

async function startLocalPostgres(config: Config, logger: Logger, clock: Clock) {
  const { startEmbeddedPostgres } = await import('./local-postgres/embedded-postgres.ts');
  const { parseSecretKeys } = await import('./core/secrets/key-ring.ts');
  const started = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    clock,
    onEvent: (message, details) => logger.info(details, message),
  });
  const [secretKeys] = parseSecretKeys(started.secretKey);
  return { ...started, secretKeys };
}

/** In a terminal, a program between it and this process may pass on a signal that this process got already: npm does. */
const SAME_SIGNAL_MS = 500;

/**
 * Resolves at the first SIGTERM or SIGINT; a second one does not wait for the drain. SIGHUP counts too, unless it has
 * work of its own.
 */
function stopSignal(logger: Logger, clock: Clock, onHangup: (() => void) | null): Promise<void> {
  if (onHangup !== null) process.on('SIGHUP', onHangup);
  return new Promise((resolve) => {
    let first: { signal: string; at: number } | undefined;
    for (const [signal, number] of [
      ['SIGTERM', 15],
      // The terminal was closed: most trials end like this.
      ['SIGHUP', 1],
      ['SIGINT', 2],
    ] as const) {
      if (signal === 'SIGHUP' && onHangup !== null) continue;
      process.on(signal, () => {
        if (first?.signal === signal && clock.monotonic() - first.at < SAME_SIGNAL_MS) return;
        if (first) {
          logger.warn(`${signal} again: the process ends at once; other instances take over what is under way`);
          logger.flush();
          process.exit(128 + number);
        }
        first = { signal, at: clock.monotonic() };
        logger.info(`${signal}: finishing the work under way; send the signal again to end at once`);
        resolve();
      });
    }
  });
}

function explained(error: unknown, config: Config): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'EADDRINUSE') {
    const isMetricsPort = 'port' in error && error.port === config.metricsPort;
    const name = isMetricsPort ? 'FIRELOCK_METRICS_PORT' : 'PORT';
    return `port ${(isMetricsPort ? config.metricsPort : config.port) ?? ''} of ${config.host} is taken; set ${name} to another one`;
  }
  // The query builder's own message is the whole statement; its cause says what is wrong.
  return 'query' in error && error.cause instanceof Error ? error.cause.message : error.message;
}

/** The tree of commands, without what they do, is for older ones too. */
function asksForHelp([first = '', ...others]: readonly string[]): boolean {
  const isHelp = (word: string) => word === '--help' || word === '-h';
  return first === 'help' || first === '--version' || [first, ...others].some(isHelp);
}

/** `needed` is `>=MAJOR.MINOR`. */
function isTooOld(present: string, needed: string): boolean {
  const [major = 0, minor = 0] = present.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.replace('>=', '').split('.').map(Number);
  return major < neededMajor || (major === neededMajor && minor < neededMinor);
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}
