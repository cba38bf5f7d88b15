import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiProblem, get } from '../../api/http.ts';
import type { Schedule, WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { RunBadge } from '../../parts/badge.tsx';
import { Copy } from '../../parts/copy.tsx';
import { NotifierLink, ScheduleLink } from '../../parts/links.tsx';
import { Empty, Loading, Refusal } from '../../parts/states.tsx';
import { type Polled, usePoll } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import type { PageProps } from '../page-props.ts';
import { Actions } from './actions.tsx';
import { BatchGraph } from './batch-graph.tsx';
import { Facts } from './facts.tsx';
import { Neighbours } from './neighbours.tsx';
import { Answer, Request } from './request-and-answer.tsx';
import { Timeline } from './timeline.tsx';
import './run.css';
import { callPath } from '../../state/schedule-paths.ts';

const OPEN_EVERY_MS = 2_000;
/** Others may retry it. */
const ENDED_EVERY_MS = 15_000;
const SCHEDULE_EVERY_MS = 60_000;

export function RunPage({ params: { id = '' } }: PageProps) {
  const first = usePoll(`run ${id}`, (signal) => get<WholeRun>(`/runs/${encodeURIComponent(id)}`, {}, signal), {
    paceOf: ({ finishedAt }) => (finishedAt === null ? OPEN_EVERY_MS : ENDED_EVERY_MS),
  });
  if (first.data) return <Shown run={first.data} asking={first} />;
  return (
    <>
      <div class="bar">
        <h1 class="user">Run {id}</h1>
      </div>
      <NotThere problem={first.problem} />
    </>
  );
}

function NotThere({ problem }: { problem: ApiProblem | undefined }) {
  if (!problem) return <Loading />;
  if (problem.status !== 404) return <Refusal text={problem.message} />;
  return (
    <Empty title="There is no such run">
      <p class="quiet">It never was, or it is not kept any more.</p>
      <a href={href('/runs')}>Show all runs</a>
    </Empty>
  );
}

function Shown({ run, asking }: { run: WholeRun; asking: Polled<WholeRun> }) {
  const { scheduleId } = run;
  const schedule = usePoll(
    `schedule of a run ${scheduleId ?? ''}`,
    (signal) => (scheduleId === null ? Promise.resolve(null) : scheduleOf(scheduleId, signal)),
    { everyMs: SCHEDULE_EVERY_MS },
  ).data;
  const zone = schedule?.timezone ?? null;
  return (
    <div class="stack">
      <div class="bar run-head">
        <Title run={run} />
        <RunBadge run={run} zone={zone} />
        {run.reason !== null && <span class="quiet">{run.reason}</span>}
        <Copy text={() => run.id}>Copy the id</Copy>
        <Actions run={run} hasSchedule={Boolean(schedule)} onDone={asking.refresh} />
      </div>
      {schedule === null && scheduleId !== null && (
        <p class="warning">Its schedule has been deleted: the run cannot be retried or fired again.</p>
      )}
      <Timeline run={run} zone={zone} />
      <LogCard run={run} />
      <BatchGraph run={run} />
      <Neighbours run={run} />
      <div class="grid wide">
        <Request run={run} />
        <Answer run={run} />
        <Facts run={run} zone={zone} />
      </div>
    </div>
  );
}

function Title({ run: { scheduleId, notifierId } }: { run: WholeRun }) {
  if (notifierId !== null)
    return (
      <h1>
        Message of the notifier <NotifierLink id={notifierId} />
      </h1>
    );
  return <h1>Run of {scheduleId === null ? 'a task asked for once' : <ScheduleLink id={scheduleId} />}</h1>;
}

/** Null: it is deleted. */
async function scheduleOf(id: string, signal: AbortSignal): Promise<Schedule | null> {
  try {
    return await get<Schedule>(callPath(id), {}, signal);
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return null;
    throw error;
  }
}

type LogShown = ComponentType<{ id: string; attempts: number }> | 'lost' | null;

/** The log of a run, which is loaded when somebody opens it: of a run that workers pull, at once. */
function LogCard({ run: { id, attempts, queue, notifierId } }: { run: WholeRun }) {
  const [Log, setLog] = useState<LogShown>(null);
  const [isOpen, setIsOpen] = useState(queue !== null);
  useEffect(() => {
    if (!isOpen || Log !== null) return;
    import('./log.tsx').then(
      (loaded) => {
        setLog(() => loaded.Log);
      },
      () => {
        setLog('lost');
      },
    );
  }, [isOpen]);
  if (notifierId !== null) return null;
  return (
    <details
      class="card"
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => {
        setIsOpen(open);
      }}
    >
      <summary>
        <h2>Log</h2>
      </summary>
      {Log === 'lost' && <p class="warning">This part of the page could not be loaded: reload the page.</p>}
      {isOpen && Log !== null && Log !== 'lost' && <Log key={id} id={id} attempts={attempts} />}
    </details>
  );
}
