import { type Browser, type Page, type Request, chromium } from 'playwright-core';
import { browserHere } from '../../../scripts/support/browser.ts';
import { median } from '../measures/statistics.ts';
import type { Visit } from './visits.ts';

/** One call of a page, over all visits that count. */
export interface PageCall {
  page: string;
  /** Without ids of runs, moments and cursors. */
  call: string;
  calls: number;
  /** From the request to the last byte of its answer, as the browser measures it. */
  medianMs: number;
  worstMs: number;
}

/** Visits each page so many times, after a first visit that does not count. Each visit is that of a new user. */
export async function lookAtPages(url: string, visits: readonly Visit[], times: number): Promise<PageCall[]> {
  const executablePath = browserHere();
  if (executablePath === null) throw new Error('no browser is installed (Debian: apt-get install chromium)');
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  try {
    const found: PageCall[] = [];
    for (const visit of visits) found.push(...(await lookAt(browser, url, visit, times)));
    return found;
  } finally {
    await browser.close();
  }
}

async function lookAt(browser: Browser, url: string, visit: Visit, times: number): Promise<PageCall[]> {
  const taken = new Map<string, number[]>();
  for (let time = 0; time <= times; time += 1) {
    if (time === 1) taken.clear();
    await visitOnce(browser, url, visit, taken);
  }
  return [...taken].map(([call, all]) => ({
    ...{ page: visit.name, call, calls: all.length },
    ...{ medianMs: median(all), worstMs: Math.max(...all) },
  }));
}

async function visitOnce(
  browser: Browser,
  url: string,
  { path, act }: Visit,
  taken: Map<string, number[]>,
): Promise<void> {
  const page = await browser.newPage();
  const faults: string[] = [];
  const open = new Set<Request>();
  page.on('request', (request) => open.add(request));
  page.on('requestfailed', (request) => open.delete(request));
  page.on('requestfinished', (request) => {
    open.delete(request);
    const call = callOf(request, url);
    const { requestStart, responseEnd } = request.timing();
    taken.set(call, [...(taken.get(call) ?? []), responseEnd - requestStart]);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) faults.push(`${response.status()} ${response.url()}`);
  });
  await page.goto(url + path);
  await settled(page, open);
  if (act) {
    await act(page);
    await settled(page, open);
  }
  await page.close();
  if (faults.length > 0) throw new Error(`${path}: ${faults.join(', ')}`);
}

const CALM_MS = 500;
const LOOK_MS = 50;

/** Nothing is asked any more, until the page asks again. The search waits for the next letter for less than that. */
async function settled(page: Page, open: ReadonlySet<Request>): Promise<void> {
  for (let calm = 0; calm < CALM_MS; calm = open.size === 0 ? calm + LOOK_MS : 0) {
    await page.waitForTimeout(LOOK_MS);
  }
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

function callOf(request: Request, url: string): string {
  const { pathname, searchParams } = new URL(request.url());
  if (!request.url().startsWith(`${url}/api/`)) return pathname.replace(/-[\w-]{8}\./, '.');
  const query = [...searchParams].map(([name, value]) => {
    const isLong = name === 'cursor' || /^\d{4}-\d{2}-/.test(value) || UUID.test(value);
    return `${name}=${isLong ? '…' : value}`;
  });
  const path = pathname.replace('/api/v1', '').replace(UUID, '…');
  return `${request.method()} ${path}${query.length > 0 ? `?${query.join('&')}` : ''}`;
}
