import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../../src/core/instant.ts';
import { sendGood } from '../../../test/support/calls.ts';
import { median } from '../measures/statistics.ts';

export interface Lag {
  what: string;
  /** How long one call takes. */
  callMs: number;
  /** The longest time that the event loop was held up, of several readings. */
  medianMs: number;
  worstMs: number;
}

const READINGS = 9;
const CALLS = 3;
const DATES = 2_000;
const CRONS = 16;
const IDLE_MS = 300;

/** How long the heaviest definitions hold up the event loop, beside a daemon that is asked nothing. */
export async function readLags(daemonUrl: string, targetUrl: string): Promise<Lag[]> {
  const heavy = heavyTiming();
  const put = { ...heavy, target: { type: 'http', url: targetUrl } };
  const [from, to] = [heavy.startAt, heavy.endAt];
  const path = '/api/v1/schedules/heavy';
  const asked: [string, () => Promise<void>][] = [
    ['nothing is asked', () => sleep(IDLE_MS)],
    ['POST /preview', () => ask(daemonUrl, 'POST', '/api/v1/preview', previewOf(heavy))],
    // Another description each time: what has not changed is not looked at.
    ['PUT', () => ask(daemonUrl, 'PUT', path, { ...put, description: String(performance.now()) })],
    ['GET …/upcoming?count=1000', () => ask(daemonUrl, 'GET', `${path}/upcoming?count=1000`)],
    [
      'GET …/occurrences of the hour',
      () => ask(daemonUrl, 'GET', `${path}/occurrences?from=${from}&to=${to}&limit=500`),
    ],
  ];
  const lags: Lag[] = [];
  await ask(daemonUrl, 'PUT', path, put);
  for (const [what, ask] of asked) lags.push({ what, ...(await readSomeTimes(daemonUrl, ask)) });
  await ask(daemonUrl, 'DELETE', path);
  return lags;
}

/** Many days, of which none is the day on which it fires, and expressions that all fire within an hour. */
function heavyTiming() {
  const day = (index: number) =>
    new Date(Date.UTC(2030, 0, 1) + 2 * index * DAY_MS).toISOString().slice(0, 10);
  return {
    cron: Array.from({ length: CRONS }, (_, index) => `${index}-59/7 * 9-17 * * MON-FRI`),
    timezone: 'Europe/Berlin',
    exclude: { dates: Array.from({ length: DATES }, (_, index) => day(index)) },
    startAt: '2029-06-01T09:00:00.000Z',
    endAt: '2029-06-01T10:00:00.000Z',
  };
}

function previewOf({ cron, timezone, exclude, startAt }: ReturnType<typeof heavyTiming>) {
  return { cron, timezone, exclude, from: startAt, count: 1000 };
}

async function readSomeTimes(daemonUrl: string, ask: () => Promise<void>): Promise<Omit<Lag, 'what'>> {
  const lags: number[] = [];
  const calls: number[] = [];
  await ask();
  while (lags.length < READINGS) {
    await longestLag(daemonUrl);
    for (let call = 0; call < CALLS; call += 1) {
      const startedAt = performance.now();
      await ask();
      calls.push(performance.now() - startedAt);
    }
    lags.push(await longestLag(daemonUrl));
  }
  return { callMs: median(calls), medianMs: median(lags), worstMs: Math.max(...lags) };
}

/** Since it was read last. */
async function longestLag(daemonUrl: string): Promise<number> {
  const text = await (await fetch(`${daemonUrl}/metrics`)).text();
  const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text) ?? [];
  return Number(seconds) * 1000;
}

async function ask(daemonUrl: string, method: string, path: string, body?: object): Promise<void> {
  await sendGood(daemonUrl + path, method, body);
}
