declare global {
  interface JSON {
    /** Source text access, in every Node this runs on and not yet in TypeScript's library. */
    parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
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
    typeof value === 'number' && source !== undefined && String(value) !== source ? JSON.rawJSON(source) : value,
  );
}

/** Whether two such trees say the same: members in any order, numbers by their decimal value, however many digits they have. */
export function equalTrees(one: unknown, other: unknown): boolean {
  const [digits, others] = [numberText(one), numberText(other)];
  if (digits !== null || others !== null)
    return digits !== null && others !== null && decimalOf(digits) === decimalOf(others);
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && equalTrees(memberOf(one, name), memberOf(other, name)))
  );
}

/** Whether the value of such a tree is below (-1), at (0) or above (1) a number, by its decimal value. Null: it is no number. */
export function compareToNumber(value: unknown, number: number): number | null {
  const text = numberText(value);
  if (text === null) return null;
  const [one, other] = [partsOf(text), partsOf(String(number))];
  if (one.sign !== other.sign) return one.sign < other.sign ? -1 : 1;
  if (one.power !== other.power) return one.power < other.power ? -one.sign : one.sign;
  return one.digits === other.digits ? 0 : one.digits < other.digits ? -one.sign : one.sign;
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
  const { sign, digits, power } = partsOf(text);
  return `${sign} ${digits} ${power}`;
}

/** A number is `sign` 0.`digits` · 10^`power`. */
interface Decimal {
  sign: -1 | 0 | 1;
  /** Neither the first nor the last is 0. */
  digits: string;
  power: bigint;
}

function partsOf(text: string): Decimal {
  const [, minus, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  const known = (whole + fraction).replace(/^0+/, '');
  const digits = known.replace(/0+$/, '');
  if (digits === '') return { sign: 0, digits, power: 0n };
  const power = BigInt(exponent) + BigInt(known.length - fraction.length);
  return { sign: minus === '' ? 1 : -1, digits, power };
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

/** As a tree whose numbers keep their digits; undefined: it is no JSON. */
export function treeIfJson(text: string): unknown {
  try {
    return parseKeepingDigits(text);
  } catch {
    return undefined;
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
