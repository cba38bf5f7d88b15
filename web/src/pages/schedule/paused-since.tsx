import { get } from '../../api/http.ts';
import type { ScheduleVersion } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { callPath } from '../../state/schedule-paths.ts';

/** Who paused it, when and why, the versions know. */
export function PausedSince({ id, version }: { id: string; version: number }) {
  const { data } = usePoll(
    `pause ${id} ${version}`,
    (signal) => get<{ items: ScheduleVersion[] }>(callPath(id, '/versions'), { limit: 100 }, signal),
    { everyMs: 60_000 },
  );
  const pause = data && beginOfPause(data.items, version);
  if (!pause) return null;
  return (
    <>
      Paused since <Time at={pause.at} zone={pause.schedule.timezone} />, by{' '}
      <span class="user">{pause.by ?? 'a caller without a token'}</span>
      {pause.schedule.pauseReason !== null && (
        <>
          : <span class="user">{pause.schedule.pauseReason}</span>
        </>
      )}
    </>
  );
}

/** `versions`: newest first. Later edits of a paused schedule leave it paused. */
function beginOfPause(versions: readonly ScheduleVersion[], version: number): ScheduleVersion | null {
  let begin: ScheduleVersion | null = null;
  for (const one of versions) {
    if (one.version > version) continue;
    if (one.schedule.enabled) break;
    begin = one;
  }
  return begin;
}
