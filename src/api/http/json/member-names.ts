import { pointer } from '../../../core/json-text.ts';
import type { Fault } from '../problem.ts';

/** Reads along with the lexer, and finds names that occur twice in one object: parsers disagree about which member counts. */
export interface MemberNames {
  open(isArray: boolean): void;
  /** A member's value begins. */
  name(name: string): void;
  /** A comma. */
  next(): void;
  close(): void;
  readonly faults: readonly Fault[];
}

/** An object or a list that is open, and where in it the lexer is. */
interface Frame {
  names: Set<string> | null;
  at: string | number;
}

/** A person does not read more. */
const MOST = 100;

/** The text need not be JSON; if it is not, its repeated names do not matter. */
export function createMemberNames(): MemberNames {
  const frames: Frame[] = [];
  const faults: Fault[] = [];
  const pathTo = () => pointer(frames.map(({ at }) => at));
  return {
    open: (isArray) => frames.push(isArray ? { names: null, at: 0 } : { names: new Set(), at: '' }),
    name: (name) => {
      const frame = frames.at(-1);
      if (!frame?.names) return;
      frame.at = name;
      if (!frame.names.has(name)) frame.names.add(name);
      else if (faults.length < MOST) faults.push({ path: pathTo(), message: 'is given more than once' });
    },
    next: () => {
      const frame = frames.at(-1);
      if (typeof frame?.at === 'number') frame.at += 1;
    },
    close: () => frames.pop(),
    faults,
  };
}
