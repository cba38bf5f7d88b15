import type { Fault } from '../../api/http.ts';
import { Field } from '../../parts/forms/field.tsx';

interface Props {
  label: string;
  path: string;
  faults: readonly Fault[];
  options: readonly string[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  /** Instead of no options. */
  empty?: string;
}

/** Any of several. */
export function ChecksField({ label, path, faults, options, chosen, onChange, empty }: Props) {
  return (
    <Field label={label} path={path} faults={faults}>
      {(props) => (
        <div {...props} class="checks" role="group" aria-label={label}>
          {options.length === 0 && <span class="quiet">{empty}</span>}
          {options.map((one) => (
            <label key={one} class="check">
              <input
                type="checkbox"
                checked={chosen.includes(one)}
                onChange={({ currentTarget }) => {
                  onChange(toggled(chosen, one, currentTarget.checked));
                }}
              />{' '}
              <span class="user">{one}</span>
            </label>
          ))}
        </div>
      )}
    </Field>
  );
}

function toggled(all: readonly string[], one: string, isOn: boolean): string[] {
  const others = all.filter((other) => other !== one);
  return isOn ? [...others, one] : others;
}
