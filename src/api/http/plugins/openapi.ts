import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifySchema } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { Api, ApiDeps } from '../../deps.ts';
import type { RoleNeeded } from '../../../core/access/roles.ts';
import { isObject } from '../json/json-body.ts';
import { problems } from '../response-schemas.ts';

declare module 'fastify' {
  interface FastifySchema {
    /** @fastify/swagger takes every body for required. */
    'x-body-optional'?: true;
  }
}

export const TAGS = {
  schedules: 'Schedules',
  runs: 'Runs',
  queues: 'Queues',
  limits: 'Limits',
  times: 'Fire times',
  calendars: 'Calendars',
  instances: 'Instances',
  signs: 'Signs of life',
} as const;

/** The document comes from the routes' zod schemas; `/docs` shows it, with nothing loaded from elsewhere. */
export async function documentRoutes(
  server: Api,
  { version, basePath }: Pick<ApiDeps, 'version' | 'basePath'>,
): Promise<void> {
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'firelock',
        version,
        description: 'A cron daemon: schedules that fire HTTP targets, and the record of every fire.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      // The paths of the document are below it.
      ...(basePath === '' ? {} : { servers: [{ url: basePath }] }),
      tags: Object.values(TAGS).map((name) => ({ name })),
      components: { securitySchemes: { bearer: BEARER } },
    },
    transform: (input) => {
      const { role } = input.route.config ?? {};
      return jsonSchemaTransform(
        role === undefined ? input : { ...input, schema: guarded(input.schema, role) },
      );
    },
    transformObject: (document) => tidy(jsonSchemaTransformObject(document)),
  });
  await server.register(swaggerUi, { routePrefix: `${basePath}/docs`, staticCSP: DOCS_CSP });
}

/** All that the page needs is its own; it calls the API of this server only. */
const DOCS_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const BEARER = {
  type: 'http',
  scheme: 'bearer',
  description:
    'A token of `firelock token create`. A daemon without tokens, on loopback, answers without. The role that a call needs ' +
    'is beside its scheme; an operator may do all that a viewer and a worker may, and an admin everything.',
} as const;

/** What every route that asks for a role can answer too, and the role itself. */
function guarded(schema: FastifySchema, role: RoleNeeded): FastifySchema {
  const response = { ...(schema.response as object), ...problems(401, 403, 429) };
  return { ...schema, response, security: [{ bearer: role === 'any' ? [] : [role] }] };
}

/** What no reader needs: the bounds of JavaScript's whole numbers, and schemas that nothing refers to. */
function tidy<Document extends object>(document: Document): Document {
  const text = JSON.stringify(document, (key, value: unknown) => {
    const isBound =
      (key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
    if (isObject(value) && 'x-body-optional' in value) return withOptionalBody(value);
    return isBound ? undefined : value;
  });
  return withoutUnused(JSON.parse(text) as Document);
}

function withOptionalBody(operation: Record<string, unknown>) {
  const body = operation['requestBody'];
  const requestBody = isObject(body) ? { ...body, required: false } : body;
  return { ...operation, 'x-body-optional': undefined, requestBody };
}

/** Every registered schema comes in two forms, as sent and as answered; most are needed in one. */
function withoutUnused<Document extends object>(document: Document): Document {
  const { components: all, ...rest } = document as Record<string, unknown>;
  const components = isObject(all) ? all : {};
  const schemas = isObject(components['schemas']) ? components['schemas'] : {};
  const used = new Map<string, unknown>();
  const visit = (text: string): void => {
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name) || !(name in schemas)) continue;
      used.set(name, schemas[name]);
      visit(JSON.stringify(schemas[name]));
    }
  };
  visit(JSON.stringify(rest));
  const sorted = [...used].sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...document, components: { ...components, schemas: Object.fromEntries(sorted) } };
}
