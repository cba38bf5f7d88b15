import { useState } from 'preact/hooks';
import { call } from '../../../api/http.ts';
import type { BackfillScheduleResponse } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Field, OtherFaults } from '../../../parts/forms/field.tsx';
import { MomentInput } from '../../../parts/forms/moment.tsx';
import { Refusal } from '../../../parts/states.tsx';
import { useAct } from '../../../state/act.ts';
import { shownZone, timeText } from '../../../state/zone.ts';
import { callPath } from '../../../state/schedule-paths.ts';
import type { DialogProps } from './dialog-props.ts';
import { type Counted, useCount } from './count.ts';

const OWN = ['/from', '/to', '/limit', '/as'];
const DAY_MS = 86_400_000;

/** Fires what a past period lacks; how much that is, is said before. */
export function BackfillDialog({ schedule, onClose, onDone }: DialogProps) {
  const zone = shownZone(schedule.timezone);
  const [from, setFrom] = useState(() => new Date(Date.now() - DAY_MS).toISOString());
  const [to, setTo] = useState(() => new Date().toISOString());
  const [limit, setLimit] = useState('1000');
  const [as, setAs] = useState('now');
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const backfill = async (): Promise<void> => {
    const isDone = await act(async () => {
      const body = { from, to, limit: Number(limit), as };
      const done = await call<BackfillScheduleResponse>('POST', callPath(schedule.id, '/backfill'), { body });
      return doneText(done, zone);
    });
    if (!isDone) return;
    onDone();
    onClose();
  };
  return (
    <Dialog title="Backfill" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void backfill();
        }}
      >
        <p class="field">
          Fires what the schedule would have fired in a past period. What has a run of its own stays as it is, but what
          was skipped or abandoned is fired.
        </p>
        <Field label="By its definition" path="/as" faults={faults}>
          {(props) => (
            <select {...props} value={as} onChange={({ currentTarget }) => setAs(currentTarget.value)}>
              <option value="now">as it is now</option>
              <option value="then">as it was then</option>
            </select>
          )}
        </Field>
        <Field label="From" path="/from" faults={faults}>
          {(props) => <MomentInput field={props} value={from} zone={zone} onChange={setFrom} />}
        </Field>
        <Field label="To" path="/to" faults={faults} hint="Not included, and not later than now.">
          {(props) => <MomentInput field={props} value={to} zone={zone} onChange={setTo} />}
        </Field>
        <Field label="At most" path="/limit" faults={faults}>
          {(props) => (
            <input
              {...props}
              inputmode="numeric"
              value={limit}
              onInput={({ currentTarget }) => setLimit(currentTarget.value)}
            />
          )}
        </Field>
        <Gain id={schedule.id} from={from} to={to} />
        <OtherFaults faults={faults} paths={OWN} />
        {refusal !== null && faults.length === 0 && <Refusal text={refusal} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy || from === '' || to === ''}>
            Backfill
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Gain({ id, from, to }: { id: string; from: string; to: string }) {
  const { data, problem } = useCount(id, from, to);
  if (problem) return <Refusal text={problem.message} />;
  if (!data) return null;
  const { missed = 0, skipped = 0, paused = 0, fired = 0 } = data.states;
  const total = missed + skipped + paused;
  return (
    <p class="warning" role="status">
      {total === 0 && !data.isCut
        ? 'Nothing was missed, skipped or paused in this period'
        : `${total}${data.isCut ? ' or more' : ''} to be fired: ${partsText(data)}`}
      {fired > 0 && `; ${fired} fired already, and stay as they are unless they were abandoned`}.
    </p>
  );
}

function partsText({ states }: Counted): string {
  return (['missed', 'skipped', 'paused'] as const)
    .filter((state) => states[state])
    .map((state) => `${states[state]} ${state}`)
    .join(', ');
}

function doneText({ created, existing, remainingFrom }: BackfillScheduleResponse, zone: string): string {
  const left = remainingFrom === null ? '' : ` Go on from ${timeText(remainingFrom, zone)}.`;
  return `${created} to be fired now, ${existing} had a run already.${left}`;
}
