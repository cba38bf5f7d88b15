import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { DefineDialog, type Existing, type Named } from './define-dialog.tsx';
import { Field, type FieldProps } from '../forms/field.tsx';

export interface Kind extends Named {
  /** Its one field besides the description. */
  field: {
    name: string;
    label: string;
    hint: string;
    /** What is sent for what was typed. */
    read: (typed: string) => unknown;
    input: (props: FieldProps & { value: string; onInput: (event: InputEventOf) => void }) => ComponentChildren;
  };
}

interface InputEventOf {
  currentTarget: { value: string };
}

interface Props {
  kind: Kind;
  /** Null: a new one. */
  existing: (Existing & { value: string }) | null;
  onDone: () => void;
  onClose: () => void;
}

/** A form for what has one field. */
export function Define({ kind, existing, onDone, onClose }: Props) {
  const [value, setValue] = useState(existing?.value ?? '');
  const { field } = kind;
  const path = `/${field.name}`;
  return (
    <DefineDialog
      {...{ kind, existing, onDone, onClose }}
      paths={[path]}
      read={() => ({ [field.name]: field.read(value) })}
    >
      {(faults) => (
        <Field label={field.label} path={path} faults={faults} hint={field.hint}>
          {(props) => field.input({ ...props, value, onInput: ({ currentTarget }) => setValue(currentTarget.value) })}
        </Field>
      )}
    </DefineDialog>
  );
}
