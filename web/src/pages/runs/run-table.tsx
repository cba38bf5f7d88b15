import type { ListRunsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { useScheduleZones } from '../../state/schedule-zones.ts';
import { oneZone } from '../../state/zone.ts';
import { RunBadge } from '../../parts/badge.tsx';
import { OriginLink, RunLink } from '../../parts/links.tsx';
import { durationText, Time } from '../../parts/time.tsx';

interface Props {
  label: string;
  runs: ListRunsResponse['items'];
  isStale?: boolean;
}

export function RunTable({ label, runs, isStale = false }: Props) {
  const zones = useScheduleZones(runs.map(({ scheduleId }) => scheduleId));
  const ofSchedules = runs.flatMap(({ scheduleId }) => (scheduleId === null ? [] : [zones.get(scheduleId)]));
  return (
    <Table
      label={label}
      columns={columnsWith(zones, oneZone(ofSchedules))}
      rows={runs}
      keyOf={({ id }) => id}
      isStale={isStale}
    />
  );
}

type Run = ListRunsResponse['items'][number];

/** `zones`: of schedules, by id, as far as they are known; `shown`: of all times. */
function columnsWith(zones: ReadonlyMap<string, string | null>, shown: string): readonly Column<Run>[] {
  const fireTime: Column<Run> = {
    head: 'Fire time',
    cell: ({ scheduledFor, scheduleId }) => <Time at={scheduledFor} zone={zones.get(scheduleId ?? '')} shown={shown} />,
  };
  const status: Column<Run> = {
    head: 'Status',
    cell: (run) => (
      <>
        <RunBadge run={run} zone={zones.get(run.scheduleId ?? '')} shown={shown} />
        {run.reason !== null && <div class="quiet">{run.reason}</div>}
      </>
    ),
  };
  return [fireTime, SCHEDULE, status, ...COLUMNS];
}

const SCHEDULE: Column<Run> = { head: 'Schedule', cell: (run) => <OriginLink of={run} /> };

const COLUMNS: readonly Column<Run>[] = [
  { head: 'Run', cell: ({ id }) => <RunLink id={id} /> },
  { head: 'Trigger', kind: 'minor', cell: ({ trigger }) => trigger },
  { head: 'Attempts', kind: 'number', cell: ({ attempts }) => attempts },
  { head: 'Late by', kind: 'number', cell: ({ latenessMs }) => durationText(latenessMs) },
  { head: 'Took', kind: 'number', cell: (run) => durationText(tookMs(run)) },
  {
    head: 'What went wrong',
    kind: 'grow',
    cell: ({ error }) =>
      error === null ? null : (
        <span class="user clip quiet" title={error.message}>
          {error.message}
        </span>
      ),
  },
];

/** From the first claim that is known to the end. */
function tookMs({ claimedAt, finishedAt, handoffStartedAt }: Run): number | null {
  const began = handoffStartedAt ?? claimedAt;
  return began === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(began);
}
