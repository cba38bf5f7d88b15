import type { Fault } from '../../api/http.ts';
import { Field } from '../../parts/forms/field.tsx';
import { TextInput } from '../../parts/forms/text-input.tsx';
import { MY_ZONE } from '../../state/zone.ts';
import { PAUSE_PATHS, PauseFields } from '../schedule/actions/pause-fields.tsx';
import type { ChosenAction, Typed } from './chosen-calls.ts';

interface Props {
  action: ChosenAction;
  typed: Typed;
  onChange: (typed: Typed) => void;
  faults: readonly Fault[];
  /** How many schedules it is about. */
  count: number;
}

/** What an action on chosen schedules asks for. */
export function ChosenFields({ action, typed, onChange, faults, count }: Props) {
  if (action === 'pause')
    return (
      <PauseFields
        pause={typed.pause}
        onChange={(pause) => onChange({ ...typed, pause })}
        zone={MY_ZONE}
        faults={faults}
        paths={PAUSE_PATHS}
      />
    );
  if (action === 'label')
    return (
      <>
        <TextInput
          label="Set the label"
          path="/labels"
          faults={faults}
          value={typed.set}
          hint="As key:value. Where the key is there already, its value becomes this one."
          onChange={(set) => onChange({ ...typed, set })}
        />
        <TextInput
          label="Remove the label"
          path="/labels/removed"
          faults={[]}
          value={typed.removed}
          hint="Its key."
          onChange={(removed) => onChange({ ...typed, removed })}
        />
      </>
    );
  if (action === 'resume') return <p class="field">What was due meanwhile is not made up for.</p>;
  return (
    <>
      <p class="field">They fire no more, and their runs that are not over are abandoned.</p>
      <Field
        label={
          <>
            Type <code>{count}</code> to delete as many schedules
          </>
        }
      >
        {(props) => (
          <input
            {...props}
            autocomplete="off"
            value={typed.count}
            onInput={({ currentTarget }) => onChange({ ...typed, count: currentTarget.value })}
          />
        )}
      </Field>
    </>
  );
}
