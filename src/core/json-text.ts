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

/** Whether two such trees say the same: members in any order, numbers by their decimal value, however many digits they have. */
export function equalTrees(one: unknown, other: unknown): boolean {
  const [digits, others] = [numberText(one), numberText(other)];
  if (digits !== null || others !== null)
    return digits !== null && others !== null && decimalOf(digits) === decimalOf(others);
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every(
      (name) => Object.hasOwn(other, name) && equalTrees(memberOf(one, name), memberOf(other, name)),
    )
  );
}

function memberOf(tree: object, name: string): unknown {
  return (tree as Record<string, unknown>)[name];
}

/** Null: it is no number. */
function numberText(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return JSON.isRawJSON(value) ? (value as { rawJSON: string }).rawJSON : null;
}

/** Of `1.0`, `1` and `10e-1` the same text. */
function decimalOf(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  if (kept === '') return '0';
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - kept.length);
  return `${sign}${kept}e${power}`;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]\+?(-?\d+))?$/;

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The JSON pointer (RFC 6901) of a path. */
export function pointer(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
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
