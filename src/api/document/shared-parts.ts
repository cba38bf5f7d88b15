import { isObject } from '../http/json/json-body.ts';
import { PROBLEM_TYPE } from '../http/problem.ts';
import { type Schemas, type SchemaTree, isInput } from './schemas.ts';

/** Puts the problems that operations answer alike into `components/responses`, which it answers. */
export function sharedAnswers(operations: readonly SchemaTree[]): SchemaTree {
  const shared: SchemaTree = {};
  for (const { responses } of operations) {
    if (!isObject(responses)) continue;
    for (const [status, answer] of Object.entries(responses)) {
      if (!isProblem(answer)) continue;
      const name = `Problem${status}`;
      shared[name] ??= answer;
      if (JSON.stringify(shared[name]) === JSON.stringify(answer))
        responses[status] = { $ref: `#/components/responses/${name}` };
    }
  }
  return shared;
}

export function isProblem(answer: unknown): answer is SchemaTree {
  return isObject(answer) && isObject(answer['content']) && PROBLEM_TYPE in answer['content'];
}

/** A body that is another one, but requires more fields, says just that. */
export function withoutRepeats(schemas: Schemas): Schemas {
  const inputs = [...schemas]
    .filter(([name]) => isInput(name))
    .map(([name, schema]) => inParts(name, schema));
  const changed = inputs.flatMap((one): [string, SchemaTree][] => {
    const base = inputs.find((other) => other.text === one.text && isSubset(other.required, one.required));
    if (base === undefined) return [];
    const required = one.required.filter((field) => !base.required.includes(field));
    const fields = required.map((field) => [field, one.properties[field]]);
    const more = { type: 'object', properties: Object.fromEntries(fields) as SchemaTree, required };
    return [[one.name, { allOf: [{ $ref: `#/components/schemas/${base.name}` }, more] }]];
  });
  return new Map([...schemas, ...changed]);
}

function inParts(name: string, schema: unknown) {
  const { required, ...rest } = isObject(schema) ? schema : {};
  return {
    name,
    required: Array.isArray(required) ? (required as string[]) : [],
    properties: isObject(rest['properties']) ? rest['properties'] : {},
    text: JSON.stringify(rest),
  };
}

/** Has fewer members, all of them among the others. */
function isSubset(some: readonly string[], others: readonly string[]): boolean {
  return some.length < others.length && some.every((one) => others.includes(one));
}
