import { get } from '../../../api/http.ts';
import { nobodyUp } from '../../../../../src/core/time/nobody-up.ts';
import type {
  GetRunResponse,
  ListInstancesResponse,
  Schedule,
} from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { RunBadge } from '../../../parts/badge.tsx';
import { RunLink } from '../../../parts/links.tsx';
import { Time, durationText } from '../../../parts/time.tsx';
import { usePoll } from '../../../state/poll.ts';
import { scope } from '../../../state/session.ts';
import { PausedSince } from '../paused-since.tsx';
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
  const missed = bucket.items.find(({ state }) => state === 'missed');
  return (
    <>
      <p>
        From <Time at={new Date(bucket.from).toISOString()} zone={schedule.timezone} />: {countsText(bucket.counts)}.
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
      {paused && (
        <p>
          <PausedSince id={schedule.id} version={paused.version} />
        </p>
      )}
      {missed && <NobodyUp at={missed.fireAt} zone={schedule.timezone} />}
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
      {told.state === 'paused' && (
        <p>
          <PausedSince id={schedule.id} version={told.version} />
        </p>
      )}
      {told.state === 'missed' && <NobodyUp at={told.fireAt} zone={schedule.timezone} />}
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
  const { data: run, problem } = usePoll(`run ${id}`, (signal) => get<GetRunResponse>(`/runs/${id}`, {}, signal));
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

/** Where the instances of the last day explain it. */
function NobodyUp({ at, zone }: { at: string; zone: string | null }) {
  const isAsked = scope.value === null;
  const { data } = usePoll(
    `instances ${isAsked}`,
    (signal) => (isAsked ? get<ListInstancesResponse>('/instances', {}, signal) : Promise.resolve({ items: [] })),
    { everyMs: 60_000 },
  );
  const gap = data && nobodyUp(data.items, at);
  if (!gap) return null;
  return (
    <p>
      No instance was up from <Time at={gap.from} zone={zone} /> to <Time at={gap.to} zone={zone} />.
    </p>
  );
}
