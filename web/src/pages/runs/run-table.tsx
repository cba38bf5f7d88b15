import type { ListRunsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Table } from '../../parts/lists/table.tsx';
import { useScheduleZones } from '../../state/schedule-zones.ts';
import { oneZone } from '../../state/zone.ts';
import { columnsWith } from './columns.tsx';

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
