import { z } from 'zod';

/** One environment variable: how to read it, what it is for, and what to do if it is wrong. */
export interface Variable<T> {
  schema: z.ZodType<T>;
  /** An example of a right value; printed with every fault. */
  hint: string;
}

export function plainText(hint: string): Variable<string | undefined> {
  return { hint, schema: z.string().optional() };
}

export function flag(hint: string): Variable<boolean> {
  const schema = z.enum(['0', '1']).optional();
  return { hint, schema: schema.transform((value) => value === '1') };
}

export function boundedNumber(smallest: number, largest: number, unit: string, standard: number): Variable<number> {
  return {
    hint: `${unit}: a whole number from ${smallest} to ${largest} (default ${standard})`,
    schema: z
      .string()
      .regex(/^\d{1,10}$/)
      .transform(Number)
      .pipe(z.number().min(smallest).max(largest))
      .default(standard),
  };
}

/** `read`: the value of a text, or what is wrong with it; null: it is none. */
export function parsed<T>(hint: string, read: (text: string) => T | { fault: string } | null): Variable<T | undefined> {
  const schema = z.string().transform((given, context) => {
    const value = read(given);
    const [path, message] = isFault(value) ? [['it'], value.fault] : [[], 'no such text'];
    if (value !== null && !isFault(value)) return value;
    context.addIssue({ code: 'custom', message, path });
    return undefined;
  });
  return { hint, schema: schema.optional() };
}

function isFault(value: unknown): value is { fault: string } {
  return typeof value === 'object' && value !== null && 'fault' in value;
}

/** What is wrong with an entry of a list. */
export interface EntryFault {
  entry: string;
  message: string;
}

/** A list: each wrong entry is an issue of its own. `standard` is used if the list is absent, and `none` for no entry. */
export function list<T>(
  hint: string,
  read: (text: string) => [value: T, faults: readonly EntryFault[]],
  none: T,
  standard = '',
): Variable<T> {
  const schema = z.string().default(standard);
  return {
    hint,
    schema: schema.transform((given, context) => {
      if (given === '') return none;
      const [value, faults] = read(given);
      for (const { entry, message } of faults) context.addIssue({ code: 'custom', message, path: [entry] });
      return value;
    }),
  };
}
