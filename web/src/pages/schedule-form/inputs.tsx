import type { FormPart } from '../../parts/forms/draft-fields.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { MomentInput } from '../../parts/forms/moment.tsx';
import type { Draft } from './draft.ts';

/** What every part of the form is given. */
export type Part = FormPart<Draft>;

interface MomentProps {
  part: Part;
  label: string;
  hint?: string;
  path: string;
  name: 'at' | 'startAt' | 'endAt';
}

export function MomentField({ part, label, hint, path, name }: MomentProps) {
  return (
    <Field label={label} hint={hint} path={path} faults={part.faults}>
      {(props) => (
        <MomentInput
          field={props}
          value={part.draft[name]}
          zone={part.draft.timezone || 'UTC'}
          onChange={(value) => {
            part.change({ [name]: value });
          }}
        />
      )}
    </Field>
  );
}
