import type { Fault } from '../../api/http.ts';
import { Field } from './field.tsx';
import type { Pair } from './pair.ts';

interface Props {
  label: string;
  hint: string;
  path: string;
  /** What a name and a value are called. */
  words: readonly [name: string, value: string];
  pairs: readonly Pair[];
  faults: readonly Fault[];
  onChange: (pairs: readonly Pair[]) => void;
}

/** Names with values, a row each. */
export function Pairs({ label, hint, path, words, pairs, faults, onChange }: Props) {
  const set = (index: number, pair: Pair | null) => {
    onChange(pairs.flatMap((one, at) => (at !== index ? [one] : pair === null ? [] : [pair])));
  };
  return (
    <Field label={label} hint={hint} path={path} faults={faults}>
      {(props) => (
        <div class="pairs" role="group" aria-label={label}>
          {pairs.map(([name, value], index) => (
            <div key={index} class="pair">
              <input
                aria-label={`${label}: ${words[0]} ${index + 1}`}
                placeholder={words[0]}
                value={name}
                onInput={({ currentTarget }) => set(index, [currentTarget.value, value])}
              />
              <input
                aria-label={`${label}: ${words[1]} ${index + 1}`}
                placeholder={words[1]}
                value={value}
                onInput={({ currentTarget }) => set(index, [name, currentTarget.value])}
              />
              <button
                type="button"
                class="plain"
                aria-label={`Remove ${name || 'this row'}`}
                onClick={() => set(index, null)}
              >
                ✕
              </button>
            </div>
          ))}
          <button {...props} type="button" onClick={() => onChange([...pairs, ['', '']])}>
            Add
          </button>
        </div>
      )}
    </Field>
  );
}
