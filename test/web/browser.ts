import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, type Page, chromium } from 'playwright-core';
import { type TestContext, onTestFinished } from 'vitest';
import { type Daemon, type Variables, startDaemon } from '../support/daemon.ts';
import { browserHere } from '../../scripts/support/browser.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { until } from '../support/until.ts';

export interface Stage {
  daemon: Daemon;
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

const root = join(import.meta.dirname, '..', '..');
const WIDE = 1280;

/**
 * A real daemon on a real database, and a real browser. Skips the test where none is installed.
 * All of it ends with the test that asked for it. The daemon reaches its database by the way that is given, if one is.
 */
export async function startStage(
  context: TestContext,
  variables: Variables = {},
  wayTo: (databaseUrl: string) => Promise<string> = (url) => Promise.resolve(url),
): Promise<Stage> {
  const executablePath = browserHere();
  if (executablePath === null) context.skip('no browser is installed (Debian: apt-get install chromium)');
  await promisify(execFile)(process.execPath, [join(root, 'scripts', 'build-web.ts'), '--if-stale']);
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const basePath = variables['FIRELOCK_BASE_PATH'] ?? '';
  const [daemon, browser] = await Promise.all([
    startDaemon({ DATABASE_URL: await wayTo(database.url), ...variables }),
    // Chromium's own sandbox needs rights that containers do not give; it visits our own pages only.
    chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    }),
  ]);
  onTestFinished(() => browser.close());
  // Where its signs of life are on another port, the API tells; it does so to those with a token, or where none is needed.
  const sign = 'FIRELOCK_METRICS_PORT' in variables ? '/api/v1/maintenance' : '/readyz';
  await until(async () => ((await daemon.call('GET', basePath + sign)).status === 200 ? true : null));
  const open: Stage['open'] = async (path, options = {}) =>
    openPage(browser, daemon.url + basePath, path, options);
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
    if (response.status() >= 400 && !expected.includes(response.status()))
      faults.push(`${response.status()}: ${response.request().method()} ${response.url()}`);
  });
  page.setDefaultTimeout(0);
  await page.goto(url + path);
  return { page, faults };
}

interface Storage {
  setItem: (name: string, value: string) => void;
}
