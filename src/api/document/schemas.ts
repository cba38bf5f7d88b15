import { isObject } from '../http/json/json-body.ts';

export type SchemaTree = Record<string, unknown>;
export type Schemas = Map<string, unknown>;

/** Turns inline bodies and answers of an operation into schemas with names. */
export function nameInlineSchemas(operation: SchemaTree, schemas: Schemas): void {
  const id = operationIdOf(operation);
  const names = NAMES[id] ?? {};
  const called = `${id.slice(0, 1).toUpperCase()}${id.slice(1)}`;
  nameIn(operation['requestBody'], names.input ?? `${called}Input`, schemas);
  const responses = operation['responses'];
  for (const [status, response] of Object.entries(isObject(responses) ? responses : {}))
    if (status.startsWith('2')) nameIn(response, names.answer ?? `${called}Answer`, schemas);
}

export function operationIdOf({ operationId }: SchemaTree): string {
  return typeof operationId === 'string' ? operationId : '';
}

function nameIn(holder: unknown, name: string, schemas: Schemas): void {
  const content = isObject(holder) ? holder['content'] : undefined;
  for (const media of Object.values(isObject(content) ? content : {})) {
    const schema = isObject(media) ? media['schema'] : undefined;
    if (!isObject(media) || !isObject(schema) || schema['type'] !== 'object') continue;
    const known = schemas.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema))
      throw new Error(
        `two schemas of the document are called ${name}: give one of them another name in api/document/names.ts`,
      );
    schemas.set(name, schema);
    media['schema'] = { $ref: `#/components/schemas/${name}` };
  }
}

/** `ScheduleDefinitionInput` says no more than `ScheduleInput`. */
export function shortName(name: string): string {
  return name.replace(/(?:Definition|Request)Input$/, 'Input');
}

/** As sent, and as answered: the plugin derives the second name from the first. */
export function isInput(name: string): boolean {
  return name.endsWith('Input');
}

/** Answers may get new fields, so a client must not refuse fields that it does not know. */
export function opened(schema: unknown): unknown {
  return edited(schema, ({ additionalProperties, ...rest }) =>
    additionalProperties === undefined || additionalProperties === false ? rest : { ...rest, additionalProperties },
  );
}

/** Examples of single fields of a body: put together they make a body that makes no sense. Whole ones stand beside it. */
export function withoutExamples(schema: unknown): unknown {
  return edited(schema, (one) => Object.fromEntries(Object.entries(one).filter(([key]) => key !== 'example')));
}

/** A union of schemas with names, each with a constant as its `type`: generators of types ask for the name of that field. */
export function withDiscriminators(schema: unknown, schemas: Schemas): unknown {
  return edited(schema, (one) => {
    const { oneOf } = one;
    const mapping = Array.isArray(oneOf) ? oneOf.map((member) => typeOf(member, schemas)) : [null];
    const known = mapping.filter((entry) => entry !== null);
    if (known.length < mapping.length) return one;
    return { ...one, discriminator: { propertyName: 'type', mapping: Object.fromEntries(known) } };
  });
}

/** Visits a schema and every schema within it. Values such as defaults and constants are no schemas. */
export function edited(schema: unknown, edit: (schema: SchemaTree) => SchemaTree): unknown {
  if (!isObject(schema)) return schema;
  const inner = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (key === 'properties' && isObject(value)) {
      const fields = Object.entries(value).map(([name, field]) => [name, edited(field, edit)] as const);
      return [key, Object.fromEntries(fields)];
    }
    if (HOLDS_ONE.has(key)) return [key, edited(value, edit)];
    if (HOLDS_SEVERAL.has(key) && Array.isArray(value)) return [key, value.map((one) => edited(one, edit))];
    return [key, value];
  });
  return edit(Object.fromEntries(inner));
}

const HOLDS_ONE = new Set(['items', 'additionalProperties', 'propertyNames', 'not']);
const HOLDS_SEVERAL = new Set(['anyOf', 'oneOf', 'allOf']);

function typeOf(member: unknown, schemas: Schemas): [type: string, ref: string] | null {
  const ref = isObject(member) ? member['$ref'] : undefined;
  if (typeof ref !== 'string') return null;
  const schema = schemas.get(ref.slice(ref.lastIndexOf('/') + 1));
  const properties = isObject(schema) ? schema['properties'] : undefined;
  const type = isObject(properties) ? properties['type'] : undefined;
  return isObject(type) && typeof type['const'] === 'string' ? [type['const'], ref] : null;
}

/**
 * The names that the document gives to bodies and answers without a named schema. The others are named after their
 * operation: `PutThingInput`, `PutThingAnswer`.
 */
const NAMES: Readonly<Record<string, { input?: string; answer?: string }>> = {
  getHealth: { answer: 'Health' },
  listSchedules: { answer: 'SchedulePage' },
  putSchedules: { input: 'ScheduleBatchInput', answer: 'ScheduleBatchResult' },
  actOnSchedules: { input: 'ScheduleBulkInput', answer: 'ScheduleBulkResult' },
  fireSchedule: { input: 'FireInput' },
  skipFire: { input: 'SkipInput', answer: 'SkippedFire' },
  unskipFire: { input: 'SkipInput', answer: 'SkippedFire' },
  backfillSchedule: { input: 'BackfillInput', answer: 'BackfillResult' },
  listVersions: { answer: 'VersionPage' },
  listUpcomingFires: { answer: 'UpcomingFires' },
  previewFires: { input: 'PreviewInput', answer: 'Preview' },
  listOccurrences: { answer: 'OccurrencePage' },
  getLoad: { answer: 'Load' },
  listCalendars: { answer: 'CalendarPage' },
  listConnections: { answer: 'ConnectionPage' },
  listNotifiers: { answer: 'NotifierPage' },
  listRuns: { answer: 'RunPage' },
  listRunsOfSchedule: { answer: 'RunPage' },
  createRuns: { input: 'RunBatchInput', answer: 'RunBatchResult' },
  cancelRun: { input: 'NothingInput' },
  actOnRuns: { input: 'RunBulkInput', answer: 'RunBulkResult' },
  claimRuns: { answer: 'ClaimedRuns' },
  listQueues: { answer: 'QueueList' },
  listLimits: { answer: 'LimitPage' },
  listInstances: { answer: 'InstanceList' },
};
