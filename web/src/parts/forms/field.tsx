import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Fault } from '../../api/http.ts';

/** What an input needs to be named and described by its field. */
export interface FieldProps {
  id: string;
  'aria-describedby'?: string;
  'aria-invalid'?: true;
}

interface Props {
  label: ComponentChildren;
  hint?: ComponentChildren;
  /** Of the whole form; those at or below `path` are shown here. */
  faults?: readonly Fault[];
  /** A JSON pointer, such as `/payload`, or a parameter's name. */
  path?: string;
  children: (props: FieldProps) => ComponentChildren;
}

/** An input with its label, and what the API found wrong with its value. */
export function Field({ label, hint, faults = [], path = '', children }: Props) {
  const id = useId();
  const own = faults.filter((fault) => isAt(fault, path));
  const note = `${id}-note`;
  const hasNote = own.length > 0 || hint !== undefined;
  return (
    <div class={`field ${own.length > 0 ? 'faulty' : ''}`}>
      <label for={id}>{label}</label>
      {children({
        id,
        ...(hasNote && { 'aria-describedby': note }),
        ...(own.length > 0 && { 'aria-invalid': true }),
      })}
      {hasNote && (
        <div id={note} class="note">
          {own.map((fault) => (
            <p key={fault.path + fault.message} class="fault">
              {faultText(fault, path)}
            </p>
          ))}
          {own.length === 0 && hint}
        </div>
      )}
    </div>
  );
}

/** Of a form: what belongs to none of its fields. */
export function OtherFaults({ faults, paths }: { faults: readonly Fault[]; paths: readonly string[] }) {
  const others = faults.filter((fault) => !paths.some((path) => isAt(fault, path)));
  if (others.length === 0) return null;
  return (
    <ul class="faults" role="alert">
      {others.map((fault) => (
        <li key={fault.path + fault.message}>{faultText(fault, '')}</li>
      ))}
    </ul>
  );
}

function isAt(fault: Fault, path: string): boolean {
  return fault.path === path || fault.path.startsWith(`${path}/`);
}

/** The place within the field's value is said too: `2: is no cron expression`. */
function faultText({ path, message }: Fault, field: string): string {
  const below = path.slice(field.length).replace(/^\//, '');
  return below === '' ? message : `${below}: ${message}`;
}
