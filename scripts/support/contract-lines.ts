import { createHash } from 'node:crypto';

export interface Contract {
  info: object;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: object };
}

interface Operation {
  operationId: string;
  parameters?: { name: string }[];
  responses: object;
}

interface Schema {
  properties?: object;
}

/**
 * A line for each operation, and for each schema with a name: what it takes, answers or has by name, and a hash of all that the
 * document says of it. So a change of the contract is seen where it is, once.
 */
export function contractLines({ paths, components, ...rest }: Contract): string[] {
  const { schemas, ...others } = components;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { operationId, parameters = [], responses } = operation;
      const taken = parameters.map(({ name }) => name).join(' ');
      const statuses = Object.keys(responses).join(' ');
      return `${path} ${method.toUpperCase()} ${operationId}(${taken}) ${statuses} ${hashOf(operation)}`;
    }),
  );
  const named = Object.entries(schemas).map(([name, schema]) => {
    const fields = Object.keys(schema.properties ?? {}).join(' ');
    return `${name} {${fields}} ${hashOf(schema)}`;
  });
  // A release is no change of the contract.
  const info = { ...rest.info, version: '' };
  return [...operations.sort(), ...named.sort(), `all else ${hashOf({ ...rest, info, others })}`];
}

function hashOf(value: object): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 8);
}
