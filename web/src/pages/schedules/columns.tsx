import type { ListSchedulesResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Badge } from '../../parts/badge.tsx';
import { chooseLabel } from '../../parts/lists/filter-bar.tsx';
import { Labels } from '../../parts/labels.tsx';
import { FollowedLink, ScheduleLink } from '../../parts/links.tsx';
import { RunStrip } from '../../parts/run-strip.tsx';
import type { Column } from '../../parts/lists/table.tsx';
import { Time, durationText } from '../../parts/time.tsx';
import { href } from '../../state/route.ts';
import { lastFailure } from './order.ts';

type Row = ListSchedulesResponse['items'][number];

const SHOWN_RUNS = 20;

/** `zone`: of all the next fires. */
export const columnsIn = (zone: string): readonly Column<Row>[] => [
  {
    head: 'Schedule',
    kind: 'grow',
    cell: ({ id, description, labels }) => (
      <>
        <ScheduleLink id={id} />
        {description !== null && (
          <div class="quiet user clip" title={description}>
            {description}
          </div>
        )}
        <div>
          <Labels labels={labels} onChoose={chooseLabel} />
        </div>
      </>
    ),
  },
  { head: 'Fires', kind: 'minor', cell: (schedule) => <When schedule={schedule} /> },
  {
    head: 'Status',
    cell: (row) => (
      <>
        <Badge status={row.status} />
        {why(row.pauseReason ?? row.error)}
        <LastFailure run={lastFailure(row)} />
        {row.late && (
          <div>
            <Badge status="late" title="No run has succeeded within its successWithinSeconds" />
          </div>
        )}
      </>
    ),
  },
  {
    head: 'Next fire',
    cell: ({ nextFireAt, timezone, pauseUntil, status }) =>
      status === 'paused' && pauseUntil !== null ? (
        <>
          <span class="quiet">paused until </span>
          <Time at={pauseUntil} zone={timezone} shown={zone} />
        </>
      ) : (
        <Time at={nextFireAt} zone={timezone} shown={zone} relative="next" />
      ),
  },
  {
    head: `Last ${SHOWN_RUNS} runs`,
    kind: 'minor',
    cell: ({ recentRuns = [], timezone }) => <RunStrip runs={recentRuns} zone={timezone} room={SHOWN_RUNS} />,
  },
];

/** On a phone it is all that is to be seen of its runs. */
function LastFailure({ run }: { run: ReturnType<typeof lastFailure> }) {
  if (run === null) return null;
  return (
    <div>
      <a href={href(`/runs/${run.id}`)}>last run</a> <Badge status={run.status} />
    </div>
  );
}

/** Why it is paused, or cannot be planned. */
function why(reason: string | null) {
  if (reason === null) return null;
  return (
    <div class="quiet user clip" title={reason}>
      {reason}
    </div>
  );
}

/** When it fires, as its definition says it. */
function When({ schedule: { cron, everySeconds, at, after, timezone } }: { schedule: Row }) {
  if (cron !== null)
    return (
      <>
        <code class="user">{[cron].flat().join('\n')}</code>
        <div class="quiet">{timezone ?? 'UTC'}</div>
      </>
    );
  if (everySeconds !== null) return <>every {durationText(everySeconds * 1000)}</>;
  if (at !== null)
    return (
      <>
        once, at <Time at={at} zone={timezone} />
      </>
    );
  if (after === null) return null;
  return (
    <>
      after <FollowedLink id={after.scheduleId} />
      <div class="quiet">{after.on.join(', ')}</div>
    </>
  );
}
