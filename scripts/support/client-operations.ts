interface Operation {
  operationId: string;
  summary: string;
  parameters?: { in: string; name: string; required?: boolean }[];
  requestBody?: { required?: boolean; content: Record<string, unknown> };
  responses: Record<string, { content?: Record<string, { schema?: { $ref?: string } }> }>;
  security?: { bearer?: string[] }[];
}

type Headers = Record<string, string>;

/** By what name a header is a parameter of the client; clients/typescript/src/operation.ts has the same for the types. */
const HEADERS: Headers = {
  'If-Match': 'ifMatch',
  'If-None-Match': 'ifNoneMatch',
  'Idempotency-Key': 'idempotencyKey',
};

/** clients/typescript/src/generated/operations.gen.ts: what the client calls by each of its methods, and the types of these. */
export function clientOperations(paths: Record<string, unknown>): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
    })),
  );
  operations.forEach(checkParameters);
  const types = operations.flatMap((operation) => [dataType(operation), ...answerTypes(operation)]).sort();
  return [
    '// This file is written by `npm run client` from the OpenAPI document.',
    '',
    "import type { CallOptions, Input, Operation } from '../operation.ts';",
    `import type {\n${types.map((type) => `    ${type},\n`).join('')}} from './types.gen.ts';`,
    '',
    'export const OPERATIONS = {',
    ...operations.map(entryOf),
    '} as const satisfies Record<string, Operation>;',
    '',
    '/** A method for each operation of the API. Each throws Problem where the daemon answers with an error. */',
    'export interface Firelock {',
    ...operations.flatMap(methodOf),
    '}',
    '',
  ].join('\n');
}

type Placed = Operation & { path: string; method: string };

function checkParameters({ operationId, parameters = [] }: Placed): void {
  const names = parameters.map(({ name }) => HEADERS[name] ?? name);
  const unknown = parameters.filter((parameter) => parameter.in === 'header' && !HEADERS[parameter.name]);
  if (unknown.length > 0 || names.includes('body') || new Set(names).size < names.length) {
    throw new Error(`the parameters of ${operationId} (${names.join()}) cannot be one object`);
  }
}

/** What is not 2xx and yet no problem: /readyz answers 503 with what it has to say. */
function furtherAnswers({ responses }: Placed): number[] {
  return Object.entries(responses)
    .filter(([status, { content }]) => !status.startsWith('2') && content?.['application/json'] !== undefined)
    .map(([status]) => Number(status));
}

function entryOf(operation: Placed): string {
  const { operationId, method, path, requestBody } = operation;
  const types = Object.keys(requestBody?.content ?? {});
  const members = [`method: '${method}'`, `path: '${path}'`];
  if (types[0] !== undefined) members.push(`bodyType: '${types[0]}'`);
  const further = furtherAnswers(operation);
  if (further.length > 0) members.push(`alsoGood: [${further.join(', ')}]`);
  return `    ${operationId}: { ${members.join(', ')} },`;
}

function methodOf(operation: Placed): string[] {
  const { operationId, method, path, summary, security } = operation;
  const role = security?.[0]?.bearer?.[0];
  const mayBeLeftOut = !takesSomethingRequired(operation);
  return [
    `    /** ${summary}. \`${method} ${path}\`${role === undefined ? '' : `, role ${role}`} */`,
    `    ${operationId}: (input${mayBeLeftOut ? '?' : ''}: Input<${dataType(operation)}>, options?: CallOptions)` +
      ` => Promise<${answerTypes(operation).join(' | ')}>;`,
  ];
}

function takesSomethingRequired({ parameters = [], requestBody }: Placed): boolean {
  return requestBody?.required === true || parameters.some(({ required }) => required === true);
}

function dataType({ operationId }: Placed): string {
  return `${capitalized(operationId)}Data`;
}

function answerTypes(operation: Placed): string[] {
  const name = capitalized(operation.operationId);
  return [`${name}Response`, ...(furtherAnswers(operation).length > 0 ? [`${name}Error`] : [])];
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
