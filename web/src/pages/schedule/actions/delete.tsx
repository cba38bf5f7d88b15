import { useState } from 'preact/hooks';
import { call } from '../../../api/http.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Field } from '../../../parts/forms/field.tsx';
import { Refusal } from '../../../parts/states.tsx';
import { useAct } from '../../../state/act.ts';
import { goTo, href } from '../../../state/route.ts';
import { callPath } from '../../../state/schedule-paths.ts';
import type { DialogProps } from './dialog-props.ts';

/** Deletes it, once its id has been typed. */
export function DeleteDialog({ schedule: { id, version }, onClose }: DialogProps) {
  const [typed, setTyped] = useState('');
  const { act, isBusy, refusal } = useAct({ quietly: true });
  const remove = async (): Promise<void> => {
    const isDone = await act(async () => {
      await call('DELETE', callPath(id), { headers: { 'if-match': `"${version}"` } });
      return `${id} is deleted.`;
    });
    if (isDone) goTo(href('/schedules'));
  };
  return (
    <Dialog title="Delete this schedule" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === id) void remove();
        }}
      >
        <p class="field">
          It fires no more, and its runs that are not over are abandoned. Runs that have ended, and its versions, stay
          readable as long as they are kept.
        </p>
        <Field
          label={
            <>
              Type <code class="user">{id}</code> to delete it
            </>
          }
        >
          {(props) => (
            <input
              {...props}
              autocomplete="off"
              spellcheck={false}
              value={typed}
              onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          )}
        </Field>
        {refusal !== null && <Refusal text={refusal} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={isBusy || typed !== id}>
            Delete
          </button>
        </div>
      </form>
    </Dialog>
  );
}
