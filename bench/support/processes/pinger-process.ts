/** Reports as `Jobs` says, at its time each, and answers how long that took. */
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Jobs, type Pinged, saidOf } from './pinger.ts';

/** Of the period: when the last job begins, and how long after its start each ends. */
const SPREAD = 0.6;
const WORK = 0.2;
const MOST_NAMED = 5;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
process.on('disconnect', () => process.exit());
process.once('message', (jobs: Jobs) => {
  void pingAll(jobs).then((pinged) => process.send?.(pinged));
});

async function pingAll(jobs: Jobs): Promise<Pinged> {
  const pinged: Pinged = { durationsMs: [], refused: [] };
  await Promise.all(jobs.keys.map((key, job) => work(jobs, { key, job }, pinged)));
  return pinged;
}

async function work(jobs: Jobs, { key, job }: { key: string; job: number }, pinged: Pinged): Promise<void> {
  const { firstAt, everyMs, moments, keys } = jobs;
  const url = `${jobs.daemonUrl}/ping/${key}`;
  for (let moment = 0; moment < moments; moment += 1) {
    const startAt = firstAt + (moment + (SPREAD * (job + 1)) / keys.length) * everyMs;
    const { isFailure, rid } = saidOf(job, moment);
    const query = rid === null ? '' : `?rid=${rid}`;
    for (const [path, at] of [
      ['/start', startAt],
      [isFailure ? '/1' : '', startAt + WORK * everyMs],
    ] as const) {
      await sleep(Math.max(0, at - Date.now()));
      const began = performance.now();
      const status = await statusOf(url + path + query);
      pinged.durationsMs.push(performance.now() - began);
      if (status !== 200 && pinged.refused.length < MOST_NAMED) pinged.refused.push(`${path}: ${status}`);
    }
  }
}

function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    }).once('error', reject);
  });
}
