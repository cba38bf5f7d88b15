import swagger from '@fastify/swagger';
import swaggerUi, { type FastifySwaggerUiOptions } from '@fastify/swagger-ui';
import type { FastifySchema, RouteHandlerMethod } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { Api, ApiDeps } from '../deps.ts';
import { finishDocument } from './document.ts';
import type { RoleNeeded } from '../../core/access/roles.ts';
import { stringify } from '../http/json/raw-json.ts';
import { type PackedFile, pack, sendPacked } from '../http/packed-file.ts';
import { problems, TAGS } from '../http/routes.ts';

declare module 'fastify' {
  interface FastifySchema {
    /** @fastify/swagger treats every body as required. */
    'x-body-optional'?: true;
  }
}

/**
 * The document comes from the routes' zod schemas; `/docs` shows it, with nothing loaded from elsewhere. Answers what serves
 * it: it is written and compressed once, since anybody may ask for it.
 */
export async function documentRoutes(
  server: Api,
  { version, basePath }: Pick<ApiDeps, 'version' | 'basePath'>,
): Promise<RouteHandlerMethod> {
  let written: Promise<PackedFile> | undefined;
  const serve: RouteHandlerMethod = async (request, reply) => {
    written ??= pack('application/json; charset=utf-8', Buffer.from(stringify(server.swagger())));
    return sendPacked(request, reply, await written);
  };
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'firelock',
        version,
        description: 'A cron daemon: schedules that fire HTTP targets, and the record of every fire.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      // The paths of the document are below it; it is relative to where the document is.
      servers: [{ url: basePath === '' ? '/' : basePath }],
      tags: Object.values(TAGS).map((name) => ({ name })),
      components: { securitySchemes: { bearer: BEARER } },
    },
    transform: (input) => {
      const { role } = input.route.config ?? {};
      return jsonSchemaTransform(role === undefined ? input : { ...input, schema: guarded(input.schema, role) });
    },
    transformObject: (document) => finishDocument(jsonSchemaTransformObject(document)),
  });
  server.addHook('onRoute', (route) => {
    if (route.url === `${basePath}/docs/json`) route.handler = serve;
  });
  await server.register(swaggerUi, pageOptions(basePath));
  return serve;
}

/** The page that shows the document, with our name on it. */
function pageOptions(basePath: string): FastifySwaggerUiOptions {
  return {
    routePrefix: `${basePath}/docs`,
    staticCSP: DOCS_CSP,
    logo: { type: 'image/svg+xml', content: Buffer.from(LOGO), href: `${basePath}/docs/` },
    theme: {
      title: 'firelock: the API',
      favicon: [
        {
          filename: 'firelock.svg',
          rel: 'icon',
          sizes: 'any',
          type: 'image/svg+xml',
          content: ICON,
        },
      ],
    },
  };
}

const svg = (width: number, inside: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} 32" height="32">${inside}</svg>`;
/** The dashboard's (web/src/icon.svg). */
const FLAME =
  '<rect width="32" height="32" rx="7" fill="#d9480f"/>' +
  '<path d="M16 6.5c1 4.500 6.500 6 6.500 12.500a6.500 6.500 0 0 1-13 0c0-2.500 1-4 2.300-5.300.2 1.800.9 2.800 2.100 3.300C13.500 13 14 9.500 16 6.500z" fill="#fff"/>';
const ICON = svg(32, FLAME);
const LOGO = svg(
  160,
  `${FLAME}<text x="44" y="24" font-family="sans-serif" font-size="24" fill="#fff">firelock</text>`,
);

/** The page loads only files of its own, and calls the API of this server only. */
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

/** What every route that needs a role can answer too, and the role itself. */
function guarded(schema: FastifySchema, role: RoleNeeded): FastifySchema {
  const response = { ...(schema.response as object), ...problems(401, 403, 408, 429, 431) };
  return { ...schema, response, security: [{ bearer: role === 'any' ? [] : [role] }] };
}
