import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../../../bench/support/measures/statistics.ts';
import { nextWhole, sleepUntil } from '../../../bench/support/measures/vitals.ts';
import { type Hosts, latenessOf } from '../../../bench/support/processes/hosts.ts';
import type { ScheduleItem } from '../../../bench/support/schedules.ts';

/** How late the witnesses' fires arrived in a period, in ms. A fire that did not arrive counts as late as it was waited for. */
export interface Period {
  fires: number;
  missing: number;
  p50: number;
  p99: number;
  max: number;
}

/** Every second each: recorded by one statement, or under locks (`queue`: a late end must not cost a fire), or judged by its day. */
const KINDS = ['plain', 'plain', 'queue', 'queue', 'dated', 'plain', 'plain', 'queue', 'dated', 'plain'];
const PER_HOST = KINDS.length;
const LATEST_MS = 30_000;
const POLL_MS = 200;

/** Schedules that have nothing to do with what burdens the daemons, ten for each URL: the burden must not change how late they fire. */
export function witnessesOf(urls: readonly string[]): ScheduleItem[] {
  return urls.flatMap((url, host) =>
    KINDS.map((kind, index) => ({
      id: `witness-${host}-${index}`,
      cron: '* * * * * *',
      timezone: 'Europe/Paris',
      ...(kind === 'dated' ? { exclude: { dates: ['2001-01-01'] } } : {}),
      ...(kind === 'queue' ? { overlap: kind } : {}),
      target: { type: 'http', url },
    })),
  );
}

/** One that follows the end of a witness of each host: how late they arrive says how long effects take. */
export function followingWitnesses(url: string, witnessHosts: number): ScheduleItem[] {
  return Array.from({ length: witnessHosts }, (_, host) => ({
    id: `witness-after-${host}`,
    after: { scheduleId: `witness-${host}-0` },
    target: { type: 'http', url },
  }));
}

/** Measures for so many seconds. The last host is that of the followers, and all others have ten fires a second. */
export async function measure(
  hosts: Hosts,
  witnessHosts: number,
  seconds: number,
): Promise<{ fires: Period; followers: Period }> {
  const from = nextWhole(1000, 500);
  const to = from + seconds * 1000;
  await sleepUntil(from - 1);
  await hosts.take();
  await sleepUntil(to);
  const followerHost = witnessHosts;
  const fires: number[] = [];
  const followers: number[] = [];
  const expected = witnessHosts * PER_HOST * seconds;
  // A follower's moment is the end of its parent's run, which may lie on either side of the period's ends.
  const expectedFollowers = witnessHosts * (seconds - 1);
  for (let waited = 0; waited < LATEST_MS; waited += POLL_MS) {
    const arrived = await hosts.take();
    fires.push(...latenessOf(arrived, { from, to }, (host) => host < followerHost));
    followers.push(...latenessOf(arrived, { from, to }, (host) => host === followerHost));
    if (fires.length >= expected && followers.length >= expectedFollowers) break;
    await sleep(POLL_MS);
  }
  return { fires: periodOf(fires, expected), followers: periodOf(followers, expectedFollowers) };
}

function periodOf(arrived: readonly number[], expected: number): Period {
  const missing = Math.max(0, expected - arrived.length);
  const lateness = [...arrived, ...new Array<number>(missing).fill(LATEST_MS)];
  const [p50 = NaN, p99 = NaN, max = NaN] = [0.5, 0.99, 1].map((share) => percentile(lateness, share));
  return { fires: arrived.length, missing, p50, p99, max };
}
