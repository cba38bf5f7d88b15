import type { Alert } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Badge } from '../badge.tsx';
import { RunLink, ScheduleLink } from '../links.tsx';
import { type Column, Table } from '../lists/table.tsx';
import { Time, durationText } from '../time.tsx';
import { useScheduleZones } from '../../state/schedule-zones.ts';
import { oneZone, timeText } from '../../state/zone.ts';
import { MEANING } from './alert-kinds.ts';

type Common = 'schedule' | 'until';

interface Props {
  label: string;
  alerts: readonly Alert[];
  /** What all of them have in common is not said again. */
  without?: readonly Common[];
  isStale?: boolean;
}

/** What is or was wrong, an episode a row. */
export function AlertTable({ label, alerts, without = [], isStale = false }: Props) {
  const zones = useScheduleZones(alerts.map(({ scheduleId }) => scheduleId));
  const shown = oneZone(alerts.map(({ scheduleId }) => zones.get(scheduleId)));
  const columns = columnsIn(shown).filter(({ part }) => part === undefined || !without.includes(part));
  return <Table {...{ label, columns, isStale }} rows={alerts} keyOf={({ id }) => id} />;
}

const columnsIn = (zone: string): readonly (Column<Alert> & { part?: Common })[] => [
  { head: 'Kind', cell: ({ kind }) => <Badge status={kind} title={MEANING[kind]} /> },
  { part: 'schedule', head: 'Schedule', cell: ({ scheduleId }) => <ScheduleLink id={scheduleId} /> },
  { head: 'Since', cell: ({ since }) => <Time at={since} shown={zone} relative /> },
  { part: 'until', head: 'Until', cell: (alert) => <Until alert={alert} zone={zone} /> },
  {
    head: 'What was wrong',
    kind: 'grow',
    cell: ({ kind, error }) =>
      error === null ? (
        <span class="quiet">{MEANING[kind]}</span>
      ) : (
        <span class="user clip" title={error}>
          {inZone(error, zone)}
        </span>
      ),
  },
  {
    head: 'Run',
    cell: ({ runId }) => (runId === null ? <span class="quiet">–</span> : <RunLink id={runId} />),
  },
];

/** What firelock writes of moments is in UTC. */
function inZone(text: string, zone: string): string {
  return text.replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (at) => timeText(at, zone));
}

function Until({ alert: { since, until }, zone }: { alert: Alert; zone: string }) {
  if (until === null) return <strong>still open</strong>;
  return (
    <>
      <Time at={until} shown={zone} />
      <div class="quiet">after {durationText(Date.parse(until) - Date.parse(since))}</div>
    </>
  );
}
