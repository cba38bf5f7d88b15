import { get } from '../../../api/http.ts';
import type {
  GetRunResponse,
  Schedule,
  ScheduleVersion,
} from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { RunBadge } from '../../../parts/badge.tsx';
import { RunLink } from '../../../parts/links.tsx';
import { Time, durationText } from '../../../parts/time.tsx';
import { usePoll } from '../../../state/poll.ts';
import { type Bucket, type Told, WORDS, countsText } from './outcome.ts';
import { whyText } from './words.ts';

const MAX_LISTED = 12;

/** What became of the occurrences that a cell stands for, and why. */
export function Panel({ bucket, schedule }: { bucket: Bucket; schedule: Schedule }) {
  const [only] = bucket.items;
  return (
    <div class="why-panel" role="status">
      {only && bucket.items.length === 1 ? (
        <OneOccurrence key={`${only.fireAt} ${only.version}`} told={only} schedule={schedule} />
      ) : (
        <Several bucket={bucket} schedule={schedule} />
      )}
    </div>
  );
}

function Several({ bucket, schedule }: { bucket: Bucket; schedule: Schedule }) {
  // Those first that somebody wants to know about.
  const listed = bucket.items.filter(({ outcome }) => outcome !== 'succeeded').slice(0, MAX_LISTED);
  const others = bucket.items.length - listed.length;
  const paused = bucket.items.find(({ state }) => state === 'paused');
  return (
    <>
      <p>
        From <Time at={new Date(bucket.from).toISOString()} zone={schedule.timezone} />:{' '}
        {countsText(bucket.counts)}.
      </p>
      <ul class="why-list">
        {listed.map((told) => (
          <li key={`${told.fireAt} ${told.version}`}>
            <Time at={told.fireAt} zone={schedule.timezone} /> <b>{WORDS[told.outcome]}</b>:{' '}
            <span class="user">{whyText(told, schedule)}</span>{' '}
            {told.runId !== undefined && <RunLink id={told.runId}>Its run</RunLink>}
          </li>
        ))}
      </ul>
      {paused && <PausedSince id={schedule.id} version={paused.version} />}
      {listed.length > 0 && others > 0 && <p class="quiet">and {others} more</p>}
    </>
  );
}

function OneOccurrence({ told, schedule }: { told: Told; schedule: Schedule }) {
  return (
    <>
      <p>
        <Time at={told.fireAt} zone={schedule.timezone} relative /> <b>{WORDS[told.outcome]}</b>
      </p>
      <p class="user">{whyText(told, schedule)}</p>
      {told.state === 'paused' && <PausedSince id={schedule.id} version={told.version} />}
      {told.runId !== undefined && (
        <ItsRun id={told.runId} zone={schedule.timezone} isItsOwn={told.state !== 'missed'} />
      )}
    </>
  );
}

interface ItsRunProps {
  id: string;
  zone: string | null;
  isItsOwn: boolean;
}

function ItsRun({ id, zone, isItsOwn }: ItsRunProps) {
  const { data: run, problem } = usePoll(`run ${id}`, (signal) =>
    get<GetRunResponse>(`/runs/${id}`, {}, signal),
  );
  return (
    <p>
      {isItsOwn ? 'Its run' : 'The run that stands for it'}: <RunLink id={id}>{id}</RunLink>{' '}
      {run && (
        <>
          <RunBadge run={run} zone={zone} /> {run.reason !== null && <span class="quiet">{run.reason}</span>}
          {run.latenessMs !== null && (
            <span class="quiet"> started {durationText(run.latenessMs)} after it was due</span>
          )}
          {run.error !== null && <span class="user"> {run.error.message}</span>}
        </>
      )}
      {problem && <span class="quiet">{problem.message}</span>}
    </p>
  );
}

/** Who paused it, when and why, the versions know. */
function PausedSince({ id, version }: { id: string; version: number }) {
  const { data } = usePoll(
    `pause ${id} ${version}`,
    (signal) =>
      get<{ items: ScheduleVersion[] }>(
        `/schedules/${encodeURIComponent(id)}/versions`,
        { limit: 100 },
        signal,
      ),
    { everyMs: 60_000 },
  );
  const pause = data && beginOfPause(data.items, version);
  if (!pause) return null;
  return (
    <p>
      Paused since <Time at={pause.at} zone={pause.schedule.timezone} />, by{' '}
      <span class="user">{pause.by ?? 'a caller without a token'}</span>
      {pause.schedule.pauseReason !== null && (
        <>
          : <span class="user">{pause.schedule.pauseReason}</span>
        </>
      )}
    </p>
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
