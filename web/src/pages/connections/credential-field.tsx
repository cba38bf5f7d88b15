import type { ComponentChildren } from 'preact';
import type { Fault } from '../../api/http.ts';
import { Field } from '../../parts/forms/field.tsx';
import type { Typed } from './connection-draft.ts';

interface Props {
  label: string;
  hint?: ComponentChildren;
  path: string;
  faults: readonly Fault[];
  /** Of its value; absent: it is one line. */
  rows?: number;
  typed: Typed;
  onChange: (typed: Typed) => void;
}

/** A value, or the name of a file that has it. */
export function CredentialField({ label, hint, path, faults, rows, typed, onChange }: Props) {
  const { text, isFile } = typed;
  return (
    <Field label={label} hint={hint} path={path} faults={faults}>
      {(props) => {
        const input = {
          ...props,
          spellcheck: false,
          value: text,
          onInput: ({ currentTarget }: { currentTarget: { value: string } }) =>
            onChange({ text: currentTarget.value, isFile }),
        };
        return (
          <>
            {rows === undefined || isFile ? (
              <input {...input} type="text" class="wide mono" autocomplete="off" />
            ) : (
              <textarea {...input} rows={rows} />
            )}
            <div>
              <label>
                <input
                  type="checkbox"
                  aria-label={`${label}: the name of a file`}
                  checked={isFile}
                  // Neither *** nor a value is the name of a file.
                  onChange={({ currentTarget }) => onChange({ text: '', isFile: currentTarget.checked })}
                />{' '}
                the name of a file
              </label>
            </div>
          </>
        );
      }}
    </Field>
  );
}
