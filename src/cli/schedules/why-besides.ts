import { nobodyUp } from '../../core/time/nobody-up.ts';
import type { InstanceAnswer, Page, ScheduleVersionAnswer } from '../server/answers.ts';
import { type Server, pathOf } from '../server/server-calls.ts';
import type { View } from '../terminal/output.ts';

/** What explains an occurrence beside its run. */
export interface WhyBesides {
  /** Newest first. */
  versions: readonly ScheduleVersionAnswer[];
  /** Those of the last day; none where the caller may not see them. */
  instances: readonly InstanceAnswer[];
}

const NEWEST = 100;

/** Asks for no more than is to be explained. @throws CliError */
export async function whyBesides(
  server: Server,
  id: string,
  { paused, missed }: { paused: boolean; missed: boolean },
): Promise<WhyBesides> {
  const path = pathOf('schedules', id, 'versions');
  const versions = paused ? await server.call('GET', path, { query: { limit: NEWEST } }) : null;
  const instances = missed ? await server.ask('GET', 'instances') : null;
  return {
    versions: versions === null ? [] : (versions.body() as Page<ScheduleVersionAnswer>).items,
    instances: instances?.status === 200 ? (instances.body() as { items: InstanceAnswer[] }).items : [],
  };
}

/** Who paused it by the version that was in force, when and why; null: that is longer ago than versions were read. */
export function pauseText({ versions }: WhyBesides, version: number, view: View): string | null {
  const older = versions.filter((one) => one.version <= version);
  const before = older.findIndex(({ schedule }) => schedule.enabled);
  const begin = older.at(before === -1 ? older.length - 1 : before - 1);
  if (begin === undefined || begin.schedule.enabled) return null;
  const { at, by, schedule } = begin;
  const reason = schedule.pauseReason === null ? '' : `: ${schedule.pauseReason}`;
  return `since ${view.time(at)}, by ${by ?? 'a caller without a token'}${reason}`;
}

/** While no instance was up around that moment; null: one was, or it is not known. */
export function nobodyUpText({ instances }: WhyBesides, fireAt: string, view: View): string | null {
  const gap = nobodyUp(instances, fireAt);
  return gap && `no instance was up from ${view.time(gap.from)} to ${view.time(gap.to)}`;
}
