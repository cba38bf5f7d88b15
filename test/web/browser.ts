import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, type Page, chromium } from 'playwright-core';
import { type TestContext, onTestFinished } from 'vitest';
import type { Variables } from '../support/daemon.ts';
import { HUNG_AFTER_MS } from '../support/until.ts';
import { type DaemonHere, daemonHere } from '../support/daemon-here.ts';
import { browserHere } from '../../scripts/support/browser.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import type { AnyDaemon } from '../support/programs.ts';

export interface Stage<Served extends AnyDaemon = DaemonHere> {
  daemon: Served;
  databaseUrl: string;
  browser: Browser;
  /** What a new user sees at this path, below the base path. */
  open: (path: string, options?: OpenOptions) => Promise<Watched>;
}

interface OpenOptions {
  token?: string;
  width?: number;
  /** Statuses of answers that the journey brings about, such as 403. */
  expected?: readonly number[];
}

interface Watched {
  page: Page;
  /** What went wrong so far: errors of the console, answers that nobody expected, requests elsewhere. */
  faults: readonly string[];
}

/** For the tests of a worker. */
let built: Promise<unknown> | undefined;
const root = join(import.meta.dirname, '..', '..');
const WIDE = 1280;

/** A whole daemon on a real database, and a real browser. Skips the test where none is installed. */
export function startStage(context: TestContext, variables: Variables = {}): Promise<Stage> {
  const start = (databaseUrl: string) => daemonHere(databaseUrl, variables);
  return startStageOf(start, context, variables['FIRELOCK_BASE_PATH']);
}

/** The same with a daemon that is started in another way. All of it ends with the test that asked for it. */
export async function startStageOf<Served extends AnyDaemon>(
  start: (databaseUrl: string) => Promise<Served>,
  context: TestContext,
  basePath = '',
): Promise<Stage<Served>> {
  const executablePath = browserHere();
  if (executablePath === null) context.skip('no browser is installed (Debian: apt-get install chromium)');
  built ??= promisify(execFile)(process.execPath, [join(root, 'scripts', 'build-web.ts'), '--if-stale']);
  await built;
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const [daemon, browser] = await Promise.all([
    start(database.url),
    // Chromium's own sandbox needs rights that containers do not give; it visits our own pages only.
    chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    }),
  ]);
  onTestFinished(() => browser.close());
  const open: Stage['open'] = async (path, options = {}) => openPage(browser, daemon.url + basePath, path, options);
  return { daemon, databaseUrl: database.url, browser, open };
}

async function openPage(
  browser: Browser,
  url: string,
  path: string,
  { token, width = WIDE, expected = [] }: OpenOptions,
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    timezoneId: 'Asia/Kolkata',
    locale: 'en-GB',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  if (token !== undefined) {
    await context.addInitScript((kept) => {
      const { sessionStorage } = globalThis as unknown as { sessionStorage: Storage };
      sessionStorage.setItem('firelock.token', kept);
    }, token);
  }
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(`error: ${message}`));
  page.on('console', (message) => {
    // A refusal is logged by the browser too; the answer itself is looked at below.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`)) faults.push(`elsewhere: ${request.url()}`);
  });
  page.on('response', (response) => {
    // On a machine that has too much to do, an answer comes too late for the daemon: pages ask again.
    const isGood = response.status() < 400 || response.status() === 503;
    if (!isGood && !expected.includes(response.status()))
      faults.push(`${response.status()}: ${response.request().method()} ${response.url()}`);
  });
  // Then it says what it waited for.
  page.setDefaultTimeout(HUNG_AFTER_MS);
  await page.goto(url + path);
  return { page, faults };
}

interface Storage {
  setItem: (name: string, value: string) => void;
}
