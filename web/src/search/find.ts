import { goTo } from '../state/route.ts';

/** Something to choose. */
export interface Find {
  key: string;
  kind: 'page' | 'action' | 'schedule' | 'run' | 'label';
  text: string;
  detail?: string;
  /** What choosing it does; it returns what to say afterwards. */
  choose: () => Promise<string | null>;
}

/** Leads to an address that href made. */
export function go(kind: Find['kind'], text: string, address: string, detail?: string): Find {
  const choose = (): Promise<null> => {
    goTo(address);
    return Promise.resolve(null);
  };
  return { key: `${kind} ${address}`, kind, text, ...(detail !== undefined && { detail }), choose };
}
