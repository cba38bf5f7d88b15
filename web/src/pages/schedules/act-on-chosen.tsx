import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiProblem, call } from '../../api/http.ts';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { OtherFaults } from '../../parts/forms/field.tsx';
import { numbered } from '../../parts/lists/bulk-words.ts';
import { type EachOutcome, actOnEach } from '../../parts/lists/each.ts';
import { ScheduleLink } from '../../parts/links.tsx';
import { Refusal } from '../../parts/states.tsx';
import { useAct } from '../../state/act.ts';
import { NO_PAUSE, PAUSE_PATHS } from '../schedule/actions/pause-fields.tsx';
import { callPath } from '../../state/schedule-paths.ts';
import { type ChosenAction, type Row, type Typed, VERBS, bodyOf, isComplete, isSoAlready } from './chosen-calls.ts';
import { ChosenFields } from './chosen-fields.tsx';

interface Props {
  action: ChosenAction;
  /** As the list shows them: one that was changed since is left as it is. */
  rows: readonly Row[];
  onDone: (outcome: EachOutcome) => void;
  onClose: () => void;
}

const LISTED = 10;
const NOTHING: Typed = { pause: NO_PAUSE, set: '', removed: '', count: '' };

/** Of schedules that were chosen one by one: a call for each of them, which may be stopped in between. */
export function ActOnChosen({ action, rows, onDone, onClose }: Props) {
  // The list goes on to ask for what there is.
  const [toDo] = useState(() => rows.filter((row) => !isSoAlready(action, row)));
  const [typed, setTyped] = useState(NOTHING);
  const [settled, setSettled] = useState(0);
  const isStopped = useRef(false);
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const go = async (): Promise<void> => {
    await act(async () => {
      const course = { onProgress: setSettled, isStopped: () => isStopped.current };
      onDone(await actOnEach(toDo, (row) => actOn(action, row, typed), course));
      return null;
    });
  };
  const close = (): void => {
    isStopped.current = true;
    if (!isBusy) onClose();
  };
  return (
    <Dialog title={`${VERBS[action]} ${numbered(rows.length, 'schedules')}`} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isComplete(action, typed, toDo.length)) void go();
        }}
      >
        <Listed rows={toDo} others={rows.length - toDo.length} action={action} />
        <ChosenFields action={action} typed={typed} onChange={setTyped} faults={faults} count={toDo.length} />
        <OtherFaults faults={faults} paths={[...PAUSE_PATHS, '/labels']} />
        {refusal !== null && <Refusal text={refusal} />}
        {isBusy && (
          <p role="status">
            {settled} of {toDo.length} are done
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={close}>
            {isBusy ? 'Stop' : 'Close'}
          </button>
          <button
            type="submit"
            class={action === 'delete' ? 'danger' : 'main'}
            disabled={isBusy || toDo.length === 0 || !isComplete(action, typed, toDo.length)}
          >
            {VERBS[action]}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Listed({ rows, others, action }: { rows: readonly Row[]; others: number; action: ChosenAction }) {
  return (
    <>
      <ul class="sample">
        {rows.slice(0, LISTED).map(({ id }) => (
          <li key={id}>
            <ScheduleLink id={id} />
          </li>
        ))}
        {rows.length > LISTED && <li class="quiet">and {rows.length - LISTED} more</li>}
      </ul>
      {others > 0 && (
        <p class="field">
          {others} of the chosen ones {others === 1 ? 'is' : 'are'} {action === 'pause' ? 'paused' : 'not paused'} as it
          is, and {others === 1 ? 'stays' : 'stay'} so.
        </p>
      )}
    </>
  );
}

async function actOn(action: ChosenAction, { id, version }: Row, typed: Typed): Promise<void> {
  const body = bodyOf(action, typed);
  try {
    await call(body === undefined ? 'DELETE' : 'PATCH', callPath(id), {
      ...(body !== undefined && { body }),
      headers: { 'if-match': `"${version}"` },
    });
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.faults.length === 0) throw error;
    const said = error.faults.map(({ path, message }) => `${path.slice(1)} ${message}`);
    throw new ApiProblem(error.status, `${id}: ${said.join('; ')}.`, error.faults);
  }
}
