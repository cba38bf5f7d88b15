import type { ComponentChildren } from 'preact';
import type { Fault } from '../../api/http.ts';
import { Field } from '../../parts/forms/field.tsx';
import { MomentInput } from '../../parts/forms/moment.tsx';
import type { Draft } from './draft.ts';

/** What every part of the form is given. */
export interface Part {
  draft: Draft;
  faults: readonly Fault[];
  change: (changes: Partial<Draft>) => void;
}

interface Common {
  part: Part;
  label: string;
  hint?: ComponentChildren;
  path: string;
}

type TextName = { [K in keyof Draft]: Draft[K] extends string ? K : never }[keyof Draft];

interface TextProps extends Common {
  name: TextName;
  type?: 'text' | 'url' | 'number';
  list?: string;
  isMono?: boolean;
}

export function TextField({ part, label, hint, path, name, type = 'text', list, isMono = false }: TextProps) {
  return (
    <Field label={label} hint={hint} path={path} faults={part.faults}>
      {(props) => (
        <input
          {...props}
          class={isMono ? 'wide mono' : 'wide'}
          inputmode={type === 'number' ? 'decimal' : type}
          list={list}
          spellcheck={false}
          autocomplete="off"
          value={part.draft[name]}
          onInput={({ currentTarget }) => {
            part.change({ [name]: currentTarget.value });
          }}
        />
      )}
    </Field>
  );
}

interface SelectProps extends Common {
  name: TextName;
  options: readonly (readonly [value: string, text: string])[];
}

/** What is below its path has fields of its own. */
export function SelectField({ part, label, hint, path, name, options }: SelectProps) {
  return (
    <Field label={label} hint={hint} path={path} faults={part.faults.filter((fault) => fault.path === path)}>
      {(props) => (
        <select
          {...props}
          value={part.draft[name]}
          onChange={({ currentTarget }) => {
            part.change({ [name]: currentTarget.value });
          }}
        >
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface AreaProps extends Common {
  name: TextName;
  rows: number;
}

export function AreaField({ part, label, hint, path, name, rows }: AreaProps) {
  return (
    <Field label={label} hint={hint} path={path} faults={part.faults}>
      {(props) => (
        <textarea
          {...props}
          rows={rows}
          dir="auto"
          spellcheck={false}
          value={part.draft[name]}
          onInput={({ currentTarget }) => {
            part.change({ [name]: currentTarget.value });
          }}
        />
      )}
    </Field>
  );
}

interface MomentProps extends Common {
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
