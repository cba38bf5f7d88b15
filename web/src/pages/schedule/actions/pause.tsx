import { useState } from 'preact/hooks';
import { call } from '../../../api/http.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Field, OtherFaults } from '../../../parts/forms/field.tsx';
import { MomentInput } from '../../../parts/forms/moment.tsx';
import { Refusal } from '../../../parts/states.tsx';
import { useAct } from '../../../state/act.ts';
import { shownZone } from '../../../state/zone.ts';
import { callPath } from '../path.ts';
import type { DialogProps } from './dialog-props.ts';
import { useCount } from './count.ts';

const OWN = ['/pauseReason', '/pauseUntil'];

/** Pauses it, until it is resumed or until a moment. */
export function PauseDialog({ schedule, onClose, onDone }: DialogProps) {
  const zone = shownZone(schedule.timezone);
  const [reason, setReason] = useState('');
  const [until, setUntil] = useState('');
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const pause = async (): Promise<void> => {
    const body = { enabled: false, pauseReason: reason || null, pauseUntil: until || null };
    const isDone = await act(async () => {
      await call('PATCH', callPath(schedule.id), { body });
      return 'It is paused.';
    });
    if (!isDone) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title="Pause this schedule" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void pause();
        }}
      >
        <p class="field">
          What is due while it is paused does not fire, and is not made up for. Runs that are recorded go on.
        </p>
        <Field
          label="Reason"
          path="/pauseReason"
          faults={faults}
          hint="Shown to users who ask why it did not run."
        >
          {(props) => (
            <input
              {...props}
              value={reason}
              onInput={({ currentTarget }) => setReason(currentTarget.value)}
            />
          )}
        </Field>
        <Field
          label="Until"
          path="/pauseUntil"
          faults={faults}
          hint="It is resumed by itself then. Empty: when somebody resumes it."
        >
          {(props) => <MomentInput field={props} value={until} zone={zone} onChange={setUntil} />}
        </Field>
        {until !== '' && schedule.after === null && <Lost id={schedule.id} until={until} />}
        <OtherFaults faults={faults} paths={OWN} />
        {refusal !== null && faults.length === 0 && <Refusal text={refusal} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy}>
            Pause
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** How many fires it costs. */
function Lost({ id, until }: { id: string; until: string }) {
  const [from] = useState(() => new Date().toISOString());
  const { data } = useCount(id, from, until);
  if (!data) return null;
  const count = data.states.upcoming ?? 0;
  return (
    <p class="warning" role="status">
      {count}
      {data.isCut && ' or more'} {count === 1 ? 'fire' : 'fires'} will not be made until then.
    </p>
  );
}
