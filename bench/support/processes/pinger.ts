import { ask, forkModule } from './child.ts';

/** Jobs that run elsewhere: of each moment of its schedule one reports a start and an end, all of them spread over the period. */
export interface Jobs {
  daemonUrl: string;
  /** One of each schedule. */
  keys: string[];
  firstAt: number;
  everyMs: number;
  moments: number;
}

export interface Pinged {
  durationsMs: number[];
  /** What was not answered by 200, in words; a few of them. */
  refused: string[];
}

/** What a job says at its end about one moment: every tenth fails, and every other job joins its reports by a `rid`. */
export function saidOf(job: number, moment: number): { isFailure: boolean; rid: string | null } {
  const number = (job * 1_000 + moment).toString(16).padStart(12, '0');
  return {
    isFailure: (job + moment) % 10 === 0,
    rid: job % 2 === 0 ? `00000000-0000-4000-8000-${number}` : null,
  };
}

/** In a process of its own, so that whatever else is measured does not wait for it. Resolves when all has been answered. */
export async function ping(jobs: Jobs): Promise<Pinged> {
  const child = forkModule(new URL('pinger-process.ts', import.meta.url), []);
  try {
    return await ask<Pinged>(child.process, jobs);
  } finally {
    await child.stop();
  }
}
