import { useState } from 'preact/hooks';
import { call } from '../../api/http.ts';
import type { ListUpcomingFiresResponse, Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { CalendarLink } from '../../parts/links.tsx';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { Refusal } from '../../parts/states.tsx';
import { Table } from '../../parts/lists/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useAct } from '../../state/act.ts';
import { may } from '../../state/session.ts';
import { shownZone, timeText } from '../../state/zone.ts';
import { callPath } from '../../state/schedule-paths.ts';

export type Fire = ListUpcomingFiresResponse['items'][number];

interface Props {
  schedule: Schedule;
  fires: readonly Fire[];
  warnings: ListUpcomingFiresResponse['warnings'];
  onDone: () => void;
}

/** The fires to come. One of them can be left out. */
export function Upcoming({ schedule, fires, warnings, onDone }: Props) {
  const [skipping, setSkipping] = useState<string | null>(null);
  const { act, isBusy } = useAct();
  const unskip = (fireAt: string) =>
    act(async () => {
      await call('POST', callPath(schedule.id, '/unskip'), { body: { fireAt } });
      onDone();
      return 'It will be made again.';
    });
  if (fires.length === 0) return <p class="quiet">No fire is to come.</p>;
  const action = ({ fireAt, skipped }: Fire) =>
    skipped ? (
      <button type="button" disabled={isBusy} onClick={() => void unskip(fireAt)}>
        Do not skip
      </button>
    ) : (
      <button type="button" onClick={() => setSkipping(fireAt)}>
        Skip…
      </button>
    );
  return (
    <>
      {warnings.map(({ calendar, validUntil }) => (
        <p key={calendar} class="warning">
          The calendar <CalendarLink id={calendar} /> says nothing of days after {validUntil}.
        </p>
      ))}
      <Table
        label="Fires to come"
        rows={fires}
        keyOf={({ fireAt }) => fireAt}
        columns={[
          {
            head: 'Fires at',
            kind: 'grow',
            cell: (fire) => <FireTime fire={fire} zone={schedule.timezone} />,
          },
          ...(may('operator') ? [{ head: <span class="unseen">Action</span>, cell: action }] : []),
        ]}
      />
      {skipping !== null && (
        <SkipDialog
          {...{ schedule, onDone }}
          fireAt={skipping}
          onClose={() => {
            setSkipping(null);
          }}
        />
      )}
    </>
  );
}

function FireTime({ fire: { fireAt, dueAt, note, skipped, skipReason }, zone }: { fire: Fire; zone: string | null }) {
  return (
    <>
      <span class={skipped ? 'struck' : ''}>
        <Time at={fireAt} zone={zone} relative="next" />
      </span>
      {dueAt !== undefined && dueAt !== fireAt && (
        <div class="quiet">
          with its jitter at <Time at={dueAt} zone={zone} />
        </div>
      )}
      {note !== undefined && <div class="doubt">{note}</div>}
      {skipped && <div class="quiet user">skipped{skipReason === undefined ? '' : `: ${skipReason}`}</div>}
    </>
  );
}

interface SkipProps {
  schedule: Schedule;
  fireAt: string;
  onClose: () => void;
  onDone: () => void;
}

function SkipDialog({ schedule, fireAt, onClose, onDone }: SkipProps) {
  const [reason, setReason] = useState('');
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const skip = async (): Promise<void> => {
    const isDone = await act(async () => {
      await call('POST', callPath(schedule.id, '/skip'), { body: { fireAt, reason: reason || null } });
      return 'This fire will not be made.';
    });
    if (!isDone) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title="Skip one fire" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void skip();
        }}
      >
        <p class="field">
          1 fire will not be made: that of {timeText(fireAt, shownZone(schedule.timezone))}. It is recorded as skipped.
        </p>
        <Field label="Reason" path="/reason" faults={faults}>
          {(props) => (
            <input {...props} value={reason} onInput={({ currentTarget }) => setReason(currentTarget.value)} />
          )}
        </Field>
        {refusal !== null && faults.length === 0 && <Refusal text={refusal} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy}>
            Skip it
          </button>
        </div>
      </form>
    </Dialog>
  );
}
