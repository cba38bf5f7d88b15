import { setTimeout as sleep } from 'node:timers/promises';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callApi, sendGood } from '../../support/calls.ts';
import { type Arrival, type Receiver, startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import type { FaultDeps } from '../faults/faults.ts';
import type { PatroniCluster } from './patroni-cluster.ts';
import { startProgram } from '../../support/programs.ts';
import type { Instance } from '../cluster/instance.ts';

/** Whether daemons call what the database says, after a failover that lost edits which they had used. */
export interface EditsTrial {
  /** Calls by lost edits: before the failover, and after it, where there must be none. */
  lostBefore: number;
  lostAfter: number;
  /** After further edits: calls as the database says them, and others. */
  right: number;
  wrong: number;
}

interface TrialOptions {
  cluster: PatroniCluster;
  /** For how long the standbys get nothing before the kill. */
  lagMs: number;
}

const LIMIT_MS = 120_000;
/** What was claimed before is sent within this time, or its claim is confirmed first. */
const UNDER_WAY_MS = 3_000;
/** A notifier's test, which firelock allows ten times a minute; one may be lost with its commit. */
const TEST_EVERY_MS = 7_000;

/** What has versions, and is used by every call or message. Their URLs say by which edit. */
const THINGS = ['schedule', 'connection', 'notifier'] as const;
type Thing = (typeof THINGS)[number];

/** Edits everything, has the daemons use it, loses that, and edits everything once more: to the same version numbers. */
export async function tryEdits({ instances, say }: FaultDeps, { cluster, lagMs }: TrialOptions): Promise<EditsTrial> {
  const receiver = await startReceiver();
  const api = `${instances[0]?.url ?? ''}/api/v1`;
  const trial = { api, receiver };
  try {
    await edit(trial, 'first');
    await used(trial, 'first');
    const old = await until(() => cluster.primary(), LIMIT_MS);
    old.freezeSenders();
    const lagged = sleep(lagMs);
    await edit(trial, 'lost');
    await used(trial, 'lost');
    await lagged;
    await old.kill();
    await cluster.primaryBeside(old);
    await used(trial, 'first');
    await sleep(UNDER_WAY_MS);
    const promotedAt = Date.now();
    await edit(trial, 'new');
    await sleep(UNDER_WAY_MS);
    const editedAt = Date.now();
    await used(trial, null);
    await sleep(UNDER_WAY_MS);
    const said = await sayOf(api);
    await removeAll(api);
    await old.start();
    await cluster.whole();
    const of = (word: string) => receiver.arrivals.filter((arrival) => wordOf(arrival) === word);
    const since = receiver.arrivals.filter(({ at }) => at >= editedAt);
    const wrong = since.filter((arrival) => said[thingOf(arrival)] !== wordOf(arrival)).length;
    const lostAfter = of('lost').filter(({ at }) => at >= promotedAt).length;
    const result = {
      lostBefore: of('lost').length - lostAfter,
      lostAfter,
      right: since.length - wrong,
      wrong,
    };
    say(`edits were lost and made anew; ${JSON.stringify(result)}`);
    return result;
  } finally {
    await receiver.close();
  }
}

interface Trial {
  api: string;
  receiver: Receiver;
}

/** The daemon may have no database at this moment. */
async function edit({ api, receiver: { url } }: Trial, word: string): Promise<void> {
  const target = (path: string, more = {}) => ({ type: 'http', url: path, ...more });
  const everySecond = { cron: '* * * * * *', graceSeconds: 0, catchUp: 'skip' };
  const bodies: Record<string, object> = {
    'connections/edits': { url: `${url}/connection/${word}`, headers: { 'X-Edit': word } },
    'schedules/edits-direct': { ...everySecond, target: target(`${url}/schedule/${word}`) },
    'schedules/edits-connected': { ...everySecond, target: target('/job', { connection: 'edits' }) },
    'notifiers/edits': {
      channel: { type: 'webhook', target: target(`${url}/notifier/${word}`) },
      on: ['late'],
      filter: { ids: ['edits-none'] },
    },
  };
  for (const [path, body] of Object.entries(bodies))
    await until(
      () =>
        sendGood(`${api}/${path}`, 'PUT', body).then(
          () => true,
          () => null,
        ),
      LIMIT_MS,
    );
}

/** Resolves when each has been called since it was asked: by that edit, or null: by whatever edit. */
async function used({ api, receiver }: Trial, word: string | null): Promise<void> {
  const since = receiver.arrivals.length;
  const isIt = (one: Arrival) => word === null || wordOf(one) === word;
  const isUsed = (thing: Thing) => receiver.arrivals.slice(since).some((one) => thingOf(one) === thing && isIt(one));
  let testedAt = -Infinity;
  await until(async () => {
    if (!isUsed('notifier') && performance.now() > testedAt + TEST_EVERY_MS) {
      testedAt = performance.now();
      await sendGood(`${api}/notifiers/edits/test`, 'POST').catch(() => undefined);
    }
    return THINGS.every(isUsed) || null;
  }, LIMIT_MS);
}

/** By which edit the database says that each is to be called. */
async function sayOf(api: string): Promise<Record<Thing, string>> {
  const get = (path: string) => callApi(`${api}/${path}`);
  const { target } = (await get('schedules/edits-direct')) as { target: { url: string } };
  const { url } = (await get('connections/edits')) as { url: string };
  const { channel } = (await get('notifiers/edits')) as { channel: { target: { url: string } } };
  const last = (text: string) => text.split('/').at(-1) ?? '';
  return { schedule: last(target.url), connection: last(url), notifier: last(channel.target.url) };
}

async function removeAll(api: string): Promise<void> {
  for (const path of ['schedules/edits-direct', 'schedules/edits-connected', 'notifiers/edits'])
    await sendGood(`${api}/${path}`, 'DELETE');
}

function thingOf({ path }: Arrival): Thing {
  return THINGS.find((thing) => path.startsWith(`/${thing}/`)) ?? 'schedule';
}

/** A header of another edit than the URL is a wrong call too. */
function wordOf({ path, headers }: Arrival): string {
  const word = path.split('/')[2] ?? '';
  const header = headers['x-edit'];
  return header === undefined || header === word ? word : `${word} with ${String(header)}`;
}

/** What became of fires that the promoted server knew nothing of, where `resume --from-now` came before the daemons. */
export interface ResumeTrial {
  /** What the command printed. */
  lines: readonly string[];
  /** Sent after the standbys got nothing more. */
  forgotten: number;
  /** Of all at-most-once fires of the trial. */
  atMostOnceRepeats: number;
}

const READY_MS = 60_000;
const SCHEDULES = 10;
/** All of them, some seconds long. */
const ENOUGH = 3 * SCHEDULES;

/** A failover that loses commits; the daemons are stopped before they reach the promoted server. */
export async function tryResume(
  { instances, say }: FaultDeps,
  { cluster, root, lagMs }: TrialOptions & { root: string },
): Promise<ResumeTrial> {
  const receiver = await startReceiver();
  try {
    await putSchedules(instances[0]?.url ?? '', receiver.url);
    await receiver.arrived(ENOUGH);
    const old = await until(() => cluster.primary(), LIMIT_MS);
    old.freezeSenders();
    const from = Date.now();
    await sleep(lagMs);
    await old.kill();
    for (const instance of instances) instance.signal('SIGTERM');
    await Promise.all(instances.map((instance) => instance.gone()));
    const forgotten = receiver.arrivals.filter(({ at }) => at >= from).length;
    await cluster.primaryBeside(old);
    const lines = await resume(root, cluster.database.url);
    say(`resumed; ${forgotten} fires had been sent that the new primary does not know`);
    await old.start();
    for (const instance of instances) instance.start();
    await Promise.all(instances.map((instance) => instance.becomesReady(READY_MS)));
    await receiver.arrived(receiver.arrivals.length + ENOUGH);
    await cluster.whole();
    return { lines, forgotten, atMostOnceRepeats: repeatsIn(receiver) };
  } finally {
    await receiver.close();
  }
}

async function putSchedules(url: string, target: string): Promise<void> {
  const items = Array.from({ length: SCHEDULES }, (_, index) => ({
    id: `resume-${index}`,
    cron: '* * * * * *',
    target: { type: 'http', url: target },
    delivery: index % 2 === 0 ? 'atLeastOnce' : 'atMostOnce',
    payload: { atMostOnce: index % 2 === 1 },
  }));
  await sendGood(`${url}/api/v1/schedules/batch`, 'POST', { items });
}

/** It refuses while an instance that was just stopped counts as alive. */
async function resume(root: string, url: string): Promise<readonly string[]> {
  return until(async () => {
    const variables = { DATABASE_URL: url, LOG_LEVEL: 'error' };
    const program = startProgram({ root, args: ['resume', '--from-now'], variables });
    return (await program.exited) === 0 ? program.text.out.trim().split('\n') : null;
  }, LIMIT_MS);
}

function repeatsIn({ arrivals }: Receiver): number {
  const ids = arrivals
    .filter(({ body }) => (body.payload as { atMostOnce: boolean }).atMostOnce)
    .map(({ body }) => body.runId);
  return ids.length - new Set(ids).size;
}

/** What daemons say of commits that were confirmed and are gone. */
export interface Told {
  logLines: number;
  /** All of their counters together. */
  metric: number;
}

/** How often they have counted it, since each was started. */
export async function countedBy(instances: readonly Instance[]): Promise<number> {
  const counts = instances.map(async ({ url }) => {
    const text = await fetch(`${url}/metrics`).then((answer) => answer.text());
    return Number(/^firelock_database_went_back_total\S* (\d+)/m.exec(text)?.[1] ?? NaN);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** How often their logs say it. Where nothing was found the logs are gone. */
export async function loggedIn(directory: string, instances: number): Promise<number> {
  const logs = Array.from({ length: instances }, (_, index) =>
    readFile(join(directory, `instance-${index + 1}.log`), 'utf8').catch(() => ''),
  );
  const lines = (await Promise.all(logs)).flatMap((log) => log.split('\n'));
  return lines.filter((line) => line.includes('the database lost commits that it had confirmed')).length;
}
