import { useState } from 'preact/hooks';

export interface Chosen {
  ids: ReadonlySet<string>;
  /** Adds or takes away. */
  toggle: (ids: readonly string[], isChosen: boolean) => void;
  /** These and no others. */
  replace: (ids: readonly string[]) => void;
}

const NONE: ReadonlySet<string> = new Set();

/** What is chosen of a list; `key` says which: of another filter or page, nothing is. */
export function useChosen(key: string): Chosen {
  const [state, setState] = useState({ key, ids: NONE });
  const ids = state.key === key ? state.ids : NONE;
  const replace = (wanted: Iterable<string>): void => {
    setState({ key, ids: new Set(wanted) });
  };
  return {
    ids,
    replace,
    toggle: (some, isChosen) => {
      const others = [...ids].filter((id) => !some.includes(id));
      replace(isChosen ? [...others, ...some] : others);
    },
  };
}
