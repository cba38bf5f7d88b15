import type { ComponentChildren } from 'preact';
import type { Fault } from '../../api/http.ts';
import { Field } from './field.tsx';

interface Props {
  label: string;
  path: string;
  faults: readonly Fault[];
  value: string;
  onChange: (value: string) => void;
  hint?: ComponentChildren;
  isRequired?: boolean;
}

/** A line of text. */
export function TextInput({ label, path, faults, value, onChange, hint, isRequired = false }: Props) {
  return (
    <Field label={label} path={path} faults={faults} hint={hint}>
      {(props) => (
        <input
          {...props}
          type="text"
          class="wide"
          autocomplete="off"
          required={isRequired}
          value={value}
          onInput={({ currentTarget }) => {
            onChange(currentTarget.value);
          }}
        />
      )}
    </Field>
  );
}
