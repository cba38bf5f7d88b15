import { z } from 'zod';
import { type Instant, isoInstant } from '../../core/instant.ts';
import type { AnsweredMoment } from './common-schemas.ts';

/** What is stored under the names of an answer's fields: moments as instants. */
type StoredAs<Answer> = { readonly [Name in keyof Answer]: StoredValue<Answer[Name]> };
type StoredValue<Value> = Value extends AnsweredMoment
  ? 'isMoment' extends keyof Value
    ? Instant
    : Value
  : Value extends readonly (infer Item)[]
    ? readonly Item[]
    : Value extends object
      ? Readonly<Value>
      : Value;

/** Makes answers of what is stored: the fields of the schema and no others, moments in ISO 8601. */
export function answersOf<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>) {
  type Answer = z.output<z.ZodObject<Shape>>;
  const fields = Object.entries(schema.shape).map(([name, field]) => [name, isMoment(field)] as const);
  return (stored: StoredAs<Answer>): Answer => {
    const values = stored as Readonly<Record<string, unknown>>;
    const answered = fields.map(([name, asMoment]) => {
      const value = values[name];
      return [name, asMoment && typeof value === 'number' ? isoInstant(value) : value] as const;
    });
    return Object.fromEntries(answered) as Answer;
  };
}

function isMoment(field: unknown): boolean {
  if (field instanceof z.ZodNullable || field instanceof z.ZodOptional) return isMoment(field.unwrap());
  return field instanceof z.ZodType && field.meta()?.['format'] === 'date-time';
}
