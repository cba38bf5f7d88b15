declare global {
  interface JSON {
    /** Source text access, in every Node this runs on and not yet in TypeScript's library. */
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
    ): unknown;
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/**
 * JSON as a tree whose numbers keep their digits, also numbers that no double can hold; JSON.stringify writes them as
 * they were.
 */
export function parseKeepingDigits(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? JSON.rawJSON(source)
      : value,
  );
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The steps of a JSON pointer (RFC 6901): `/a~1b/0` is `a/b`, then `0`. Null: it is none. */
export function pointerSteps(pointer: string): string[] | null {
  if (pointer === '') return [];
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) return null;
  const steps = pointer.slice(1).split('/');
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The value to which these steps lead; undefined: there is nothing. */
export function valueAt(tree: unknown, steps: readonly string[]): unknown {
  let value = tree;
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return undefined;
    if (Array.isArray(value) && !/^(?:0|[1-9]\d*)$/.test(step)) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}
