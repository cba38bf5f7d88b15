import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { place, setQuery } from '../../state/route.ts';
import { SavedFilters } from './saved-filters.tsx';

/** Filters of a list, all of them in the address. */
export function FilterBar({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="bar filters" role="search">
      {children}
      <SavedFilters name={name} />
    </div>
  );
}

const TYPED_FOR_MS = 250;

/** A text that filters as it is typed. */
export function TextFilter({ name, label, width = 20 }: { name: string; label: string; width?: number }) {
  const inAddress = place.value.query.get(name) ?? '';
  const [typed, setTyped] = useState(inAddress);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    setTyped(inAddress);
  }, [inAddress]);
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      size={width}
      value={typed}
      onInput={({ currentTarget: { value } }) => {
        setTyped(value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => {
          setQuery({ [name]: value.trim() });
        }, TYPED_FOR_MS);
      }}
    />
  );
}

interface OneOfProps {
  name: string;
  label: string;
  options: readonly (readonly [value: string, text: string])[];
}

/** One of a few values, or (the first) any. */
export function OneOf({ name, label, options }: OneOfProps) {
  const id = useId();
  return (
    <>
      <label for={id} class="unseen">
        {label}
      </label>
      <select
        id={id}
        value={place.value.query.get(name) ?? ''}
        onChange={({ currentTarget }) => {
          setQuery({ [name]: currentTarget.value });
        }}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </>
  );
}

/** Labels that must all be there; each goes by a click on it. `known`: what is suggested, and taken as soon as it is typed. */
export function LabelFilter({ known = [] }: { known?: readonly string[] }) {
  const list = useId();
  const [typed, setTyped] = useState('');
  const [isWrong, setWrong] = useState(false);
  const chosen = place.value.query.getAll('label');
  const add = (text = typed): void => {
    const label = text.trim();
    if (label === '') return;
    setWrong(label.indexOf(':') < 1);
    if (label.indexOf(':') < 1) return;
    setTyped('');
    chooseLabel(label);
  };
  return (
    <form
      class="labels"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <input
        type="text"
        aria-label="Label, as key:value; Enter adds it"
        aria-invalid={isWrong}
        placeholder="Label, as key:value"
        size={16}
        list={list}
        value={typed}
        onInput={({ currentTarget: { value } }) => {
          setTyped(value);
          if (known.filter((label) => label.startsWith(value)).join() === value) add(value);
        }}
        onBlur={() => {
          add();
        }}
      />
      <datalist id={list}>
        {known.map((label) => (
          <option key={label} value={label} />
        ))}
      </datalist>
      {chosen.map((label) => (
        <button
          key={label}
          type="button"
          class="label user"
          title={`Remove ${label} from the filter`}
          onClick={() => {
            setQuery({ label: chosen.filter((one) => one !== label) });
          }}
        >
          {label} ✕
        </button>
      ))}
    </form>
  );
}

export function chooseLabel(label: string): void {
  setQuery({ label: [...new Set([...place.value.query.getAll('label'), label])] });
}
