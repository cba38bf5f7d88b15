import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call, type Fault } from '../../api/http.ts';
import { useAct } from '../../state/act.ts';
import { Refusal } from '../states.tsx';
import { Dialog } from '../forms/dialog.tsx';
import { OtherFaults } from '../forms/field.tsx';
import { TextInput } from '../forms/text-input.tsx';

/** What is known by an id, and made, changed and deleted as a whole: a limit, a calendar, a connection. */
export interface Named {
  /** `limit`. */
  noun: string;
  hint: ComponentChildren;
}

export interface Existing {
  id: string;
  description: string | null;
  /** Sent back as a precondition. */
  version: number;
}

interface Props {
  kind: Named;
  /** Null: a new one. */
  existing: Existing | null;
  /** Of the fields that are given, as JSON pointers. */
  paths: readonly string[];
  /** What is sent besides the description. Throws an ApiProblem for what cannot be sent at all. */
  read: () => Record<string, unknown>;
  children: (faults: readonly Fault[]) => ComponentChildren;
  onDone: () => void;
  onClose: () => void;
}

/** A form for it, with the API's faults beside the fields. */
export function DefineDialog({ kind, existing, paths, read, children, onDone, onClose }: Props) {
  const [id, setId] = useState(existing?.id ?? '');
  const [description, setDescription] = useState(existing?.description ?? '');
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const { noun } = kind;
  const path = `/${noun}s/${encodeURIComponent(id.trim())}`;
  const finish = async (what: () => Promise<string>): Promise<void> => {
    if (!(await act(what))) return;
    onDone();
    onClose();
  };
  const save = async (): Promise<string> => {
    const body = { description: description === '' ? null : description, ...read() };
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
          <TextInput {...{ label: 'Id', path: 'id', faults, hint: kind.hint, value: id }} onChange={setId} isRequired />
        )}
        <TextInput
          {...{ label: 'Description', path: '/description', faults, value: description }}
          onChange={setDescription}
        />
        {children(faults)}
        <OtherFaults faults={faults} paths={['id', '/description', ...paths]} />
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

/** What was made or changed meanwhile is not written over. */
function conditionOf(existing: Existing | null): Record<string, string> {
  return existing === null ? { 'if-none-match': '*' } : { 'if-match': `"${existing.version}"` };
}
