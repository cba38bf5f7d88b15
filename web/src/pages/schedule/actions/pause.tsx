import { useState } from 'preact/hooks';
import { call } from '../../../api/http.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { OtherFaults } from '../../../parts/forms/field.tsx';
import { Refusal } from '../../../parts/states.tsx';
import { useAct } from '../../../state/act.ts';
import { shownZone } from '../../../state/zone.ts';
import { callPath } from '../../../state/schedule-paths.ts';
import type { DialogProps } from './dialog-props.ts';
import { useCount } from './count.ts';
import { NO_PAUSE, PAUSE_PATHS, PauseFields, pauseBody } from './pause-fields.tsx';

/** Pauses it, until it is resumed or until a moment. */
export function PauseDialog({ schedule, onClose, onDone }: DialogProps) {
  const zone = shownZone(schedule.timezone);
  const [pause, setPause] = useState(NO_PAUSE);
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const send = async (): Promise<void> => {
    const isDone = await act(async () => {
      await call('PATCH', callPath(schedule.id), { body: pauseBody(pause) });
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
          void send();
        }}
      >
        <p class="field">
          What is due while it is paused does not fire, and is not made up for. Runs that are recorded go on.
        </p>
        <PauseFields pause={pause} onChange={setPause} zone={zone} faults={faults} paths={PAUSE_PATHS} />
        {pause.until !== '' && schedule.after === null && <Lost id={schedule.id} until={pause.until} />}
        <OtherFaults faults={faults} paths={PAUSE_PATHS} />
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
