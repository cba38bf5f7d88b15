import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call, type Fault } from '../../api/http.ts';
import { useAct } from '../../state/act.ts';
import { Dialog } from './dialog.tsx';
import { Field, type FieldProps, OtherFaults } from './field.tsx';
import { Refusal } from '../states.tsx';

/** What is known by an id, and made, changed and deleted as a whole: a limit, a calendar. */
export interface Kind {
  /** `limit`. */
  noun: string;
  /** `/limits`. */
  path: string;
  hint: ComponentChildren;
  /** Its one field besides the description. */
  field: {
    name: string;
    label: string;
    hint: string;
    /** What is sent for what was typed. */
    read: (typed: string) => unknown;
    input: (
      props: FieldProps & { value: string; onInput: (event: InputEventOf) => void },
    ) => ComponentChildren;
  };
}

interface InputEventOf {
  currentTarget: { value: string };
}

interface Defined {
  id: string;
  description: string | null;
  value: string;
  /** Sent back as a precondition, where the API takes one. */
  version?: number;
}

interface Props {
  kind: Kind;
  /** Null: a new one. */
  existing: Defined | null;
  onDone: () => void;
  onClose: () => void;
}

/** A form for it, with the API's faults beside the fields. */
export function Define({ kind, existing, onDone, onClose }: Props) {
  const [id, setId] = useState(existing?.id ?? '');
  const [description, setDescription] = useState(existing?.description ?? '');
  const [value, setValue] = useState(existing?.value ?? '');
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const { noun, field } = kind;
  const path = `${kind.path}/${encodeURIComponent(id.trim())}`;
  const finish = async (what: () => Promise<string>): Promise<void> => {
    if (!(await act(what))) return;
    onDone();
    onClose();
  };
  const save = async (): Promise<string> => {
    const body = { description: description === '' ? null : description, [field.name]: field.read(value) };
    await call('PUT', path, { body, headers: conditionOf(existing) });
    return `The ${noun} ${id.trim()} is saved.`;
  };
  const remove = async (): Promise<string> => {
    await call('DELETE', path);
    return `The ${noun} ${id} is deleted.`;
  };
  return (
    <Dialog title={existing ? `Edit the ${noun} ${existing.id}` : `New ${noun}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void finish(save);
        }}
      >
        {existing === null && (
          <Text
            label="Id"
            path="id"
            faults={faults}
            hint={kind.hint}
            value={id}
            onChange={setId}
            isRequired
          />
        )}
        <Text
          {...{ label: 'Description', path: '/description', faults, value: description }}
          onChange={setDescription}
        />
        <Field label={field.label} path={`/${field.name}`} faults={faults} hint={field.hint}>
          {(props) =>
            field.input({ ...props, value, onInput: ({ currentTarget }) => setValue(currentTarget.value) })
          }
        </Field>
        <OtherFaults faults={faults} paths={['id', '/description', `/${field.name}`]} />
        {refusal !== null && faults.length === 0 && <Refusal text={refusal} />}
        <div class="actions">
          {existing && (
            <button type="button" class="danger" disabled={isBusy} onClick={() => void finish(remove)}>
              Delete
            </button>
          )}
          <button type="submit" class="main" disabled={isBusy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** What was made or changed meanwhile is not written over, where the API can tell. */
function conditionOf(existing: Defined | null): Record<string, string> {
  if (existing === null) return { 'if-none-match': '*' };
  return existing.version === undefined ? {} : { 'if-match': `"${existing.version}"` };
}

interface TextProps {
  label: string;
  path: string;
  faults: readonly Fault[];
  value: string;
  onChange: (value: string) => void;
  hint?: ComponentChildren;
  isRequired?: boolean;
}

function Text({ label, path, faults, value, onChange, hint, isRequired = false }: TextProps) {
  return (
    <Field label={label} path={path} faults={faults} hint={hint}>
      {(props) => (
        <input
          {...props}
          type="text"
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
