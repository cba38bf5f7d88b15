import { useState } from 'preact/hooks';
import { BulkDialog } from '../../parts/lists/bulk.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { ScheduleLink } from '../../parts/links.tsx';
import { MY_ZONE } from '../../state/zone.ts';

interface Props {
  action: 'pause' | 'resume';
  filter: Record<string, unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Of all schedules that match the filter. */
export function PauseOrResume({ action, filter, onDone, onClose }: Props) {
  const [reason, setReason] = useState('');
  const [until, setUntil] = useState('');
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
        ...(reason !== '' && { reason }),
        ...(until !== '' && { until: new Date(until).toISOString() }),
      }}
      fieldPaths={['/reason', '/until']}
      link={(id) => <ScheduleLink id={id} />}
      onDone={onDone}
      onClose={onClose}
      {...(action === 'pause' && {
        fields: (faults) => (
          <>
            <Field
              label="Reason"
              path="/reason"
              faults={faults}
              hint="Shown beside each of them. May be empty."
            >
              {(props) => (
                <input
                  {...props}
                  type="text"
                  value={reason}
                  onInput={({ currentTarget }) => {
                    setReason(currentTarget.value);
                  }}
                />
              )}
            </Field>
            <Field
              label={`Until (${MY_ZONE})`}
              path="/until"
              faults={faults}
              hint="Then they are enabled again by themselves. Empty: until somebody resumes them."
            >
              {(props) => (
                <input
                  {...props}
                  type="datetime-local"
                  value={until}
                  onInput={({ currentTarget }) => {
                    setUntil(currentTarget.value);
                  }}
                />
              )}
            </Field>
          </>
        ),
      })}
    />
  );
}
