import type { ComponentChildren } from 'preact';
import type { Fault } from '../../api/http.ts';
import { Field } from './field.tsx';

/** What every part of a form is given; a part that needs less of the draft takes a part of that. */
export interface FormPart<D> {
  draft: D;
  faults: readonly Fault[];
  change: (changes: Partial<D>) => void;
}

interface Common<D> {
  part: FormPart<D>;
  /** Of the draft. */
  name: TextName<D>;
  label: string;
  hint?: ComponentChildren;
  path: string;
}

type TextName<D> = { [K in keyof D]: D[K] extends string ? K : never }[keyof D] & string;

function textOf<D>({ draft }: FormPart<D>, name: TextName<D>): string {
  return String(draft[name]);
}

function changeTo<D>({ change }: FormPart<D>, name: TextName<D>, text: string): void {
  change({ [name]: text } as unknown as Partial<D>);
}

interface TextProps<D> extends Common<D> {
  type?: 'text' | 'url' | 'number';
  list?: string;
  isMono?: boolean;
}

export function TextField<D>({ part, label, hint, path, name, type = 'text', list, isMono = false }: TextProps<D>) {
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
          value={textOf(part, name)}
          onInput={({ currentTarget }) => {
            changeTo(part, name, currentTarget.value);
          }}
        />
      )}
    </Field>
  );
}

interface SelectProps<D> extends Common<D> {
  options: readonly (readonly [value: string, text: string])[];
}

/** What is below its path has fields of its own. */
export function SelectField<D>({ part, label, hint, path, name, options }: SelectProps<D>) {
  return (
    <Field label={label} hint={hint} path={path} faults={part.faults.filter((fault) => fault.path === path)}>
      {(props) => (
        <select
          {...props}
          value={textOf(part, name)}
          onChange={({ currentTarget }) => {
            changeTo(part, name, currentTarget.value);
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

interface AreaProps<D> extends Common<D> {
  rows: number;
}

export function AreaField<D>({ part, label, hint, path, name, rows }: AreaProps<D>) {
  return (
    <Field label={label} hint={hint} path={path} faults={part.faults}>
      {(props) => (
        <textarea
          {...props}
          rows={rows}
          dir="auto"
          spellcheck={false}
          value={textOf(part, name)}
          onInput={({ currentTarget }) => {
            changeTo(part, name, currentTarget.value);
          }}
        />
      )}
    </Field>
  );
}
