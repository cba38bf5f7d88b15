import { isObject } from '../http/json/json-body.ts';
import { type SchemaTree, edited } from './schemas.ts';

/**
 * The same rules in forms from which generators of clients for other languages make code that compiles and works. What
 * fits a schema before fits it afterwards, and the other way round.
 */
export function inPlainForm(schema: unknown): unknown {
  return edited(schema, (one) => asRule(withNulls(withSize(withoutFillers(nullableInOne(one))))));
}

/**
 * An example that is null says nothing. Neither does a default that is null or an empty object, and generators write every
 * other default than a plain value of a plain type into their code as it stands in the document.
 */
function withoutFillers(schema: SchemaTree): SchemaTree {
  const hasPlainType = 'type' in schema && schema['type'] !== 'object';
  const isFiller = ([key, value]: [string, unknown]) =>
    (key === 'example' && value === null) || (key === 'default' && (value === null || !hasPlainType));
  return Object.fromEntries(Object.entries(schema).filter((entry) => !isFiller(entry)));
}

/** `{ anyOf: [{ type: 'string' }, { type: 'null' }] }` is `{ type: ['string', 'null'] }`. */
function nullableInOne(schema: SchemaTree): SchemaTree {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [value, none] = anyOf as unknown[];
  if (!isNull(none) || !isObject(value) || !SCALARS.has(value['type']) || 'enum' in value) return schema;
  return { ...value, ...rest, type: [value['type'], 'null'] };
}

const SCALARS: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean']);

/** How large a number may be, where it is not said: many languages would take it for one of 32 bits. */
function withSize(schema: SchemaTree): SchemaTree {
  const types = [schema['type']].flat();
  if (types.includes('number')) return { ...schema, format: 'double' };
  const isSmall = Number(schema['maximum'] ?? Infinity) < 2 ** 31;
  return types.includes('integer') && !isSmall ? { ...schema, format: 'int64' } : schema;
}

/** A field that is always null: not every language has a type that is only that. */
function withNulls(schema: SchemaTree): SchemaTree {
  const { properties } = schema;
  if (!isObject(properties)) return schema;
  const fields = Object.entries(properties).map(
    ([name, field]) => [name, isNull(field) ? { ...field, type: undefined, const: null } : field] as const,
  );
  return { ...schema, properties: Object.fromEntries(fields) };
}

/** Fields, and alternatives of what they may be together: as a type it is neither a record nor a choice, so it is a rule. */
function asRule(schema: SchemaTree): SchemaTree {
  const { oneOf, anyOf, ...rest } = schema;
  if (rest['properties'] === undefined || (oneOf === undefined && anyOf === undefined)) return schema;
  return { ...rest, if: oneOf === undefined ? { anyOf } : { oneOf }, else: { not: {} } };
}

function isNull(schema: unknown): schema is SchemaTree {
  return isObject(schema) && schema['type'] === 'null';
}
