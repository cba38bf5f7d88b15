import { useState } from 'preact/hooks';
import { BulkDialog } from '../../parts/lists/bulk.tsx';
import { ScheduleLink } from '../../parts/links.tsx';
import { MY_ZONE } from '../../state/zone.ts';
import { NO_PAUSE, PauseFields } from '../schedule/actions/pause-fields.tsx';

interface Props {
  action: 'pause' | 'resume';
  filter: Record<string, unknown>;
  onDone: () => void;
  onClose: () => void;
}

const PATHS = ['/reason', '/until'] as const;

/** Of all schedules that match the filter. */
export function PauseOrResume({ action, filter, onDone, onClose }: Props) {
  const [pause, setPause] = useState(NO_PAUSE);
  const sent = Object.fromEntries(
    Object.entries(filter).filter(
      ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
    ),
  );
  return (
    <BulkDialog
      verb={action === 'pause' ? 'Pause' : 'Resume'}
      things="schedules"
      path="/schedules/bulk"
      body={{
        action,
        filter: sent,
        ...(pause.reason !== '' && { reason: pause.reason }),
        ...(pause.until !== '' && { until: pause.until }),
      }}
      fieldPaths={PATHS}
      link={(id) => <ScheduleLink id={id} />}
      onDone={onDone}
      onClose={onClose}
      {...(action === 'pause' && {
        fields: (faults) => (
          <PauseFields pause={pause} onChange={setPause} zone={MY_ZONE} faults={faults} paths={PATHS} />
        ),
      })}
    />
  );
}
