import { z } from 'zod';
import type { Scope } from '../../core/access/scope.ts';
import { pointerSteps, valueAt } from '../../core/json-text.ts';
import {
  type Decide,
  type NamedKind,
  type NamedPut,
  putNamed,
  removeNamed,
  tryToPutNamed,
} from '../../operations/named-changes.ts';
import { pageRoom } from '../../postgres/sql/lists.ts';
import { type NamedThing, findNamed, listNamed } from '../../store/names/named-rows.ts';
import { audited } from '../audit/entries.ts';
import type { Api, ApiDeps } from '../deps.ts';
import {
  idOfAnother,
  unexpectedBody,
  checkPreconditions,
  etagOf,
  ifMatchHeader,
  preconditionHeaders,
} from '../http/request-checks.ts';
import { pageOf, pageSchema, limitQuery, scheduleCursor } from '../http/pages.ts';
import { noSuch } from '../http/problem.ts';
import { addRoute, json, nothing, TAGS } from '../http/routes.ts';
import type { NamedNoun } from '../../core/events.ts';
import { text } from '../http/common-schemas.ts';

/** What a kind of named things has of its own in the API. */
interface NamedResource<Thing extends NamedThing & Content, Content, Input> {
  kind: NamedKind<Thing, Content, ApiDeps>;
  /** The last part of its list's path. */
  list: 'calendars' | 'limits' | 'connections' | 'notifiers';
  id: z.ZodType<string>;
  input: z.ZodType<Input>;
  /** What is answered, and how; secret values are masked. */
  answered: z.ZodType;
  answer: (stored: Thing) => object;
  /** What was sent, in the form in which it is stored. @throws Problem */
  resolve: (input: Input, context: Resolving<Thing>) => ReturnType<Decide<Thing, NoInfer<Content>>>;
  summaries: { get: string; put: string; delete: string };
  /** Why PUT may be refused, beside what may be wrong with any. */
  refusals: readonly number[];
}

export interface Resolving<Thing> {
  current: Thing | null;
  /** The thing's, or the one that it will get. */
  uid: string;
  scope: Scope;
  deps: ApiDeps;
}

export function addNamedRoutes<Thing extends NamedThing & Content, Content, Input>(
  api: Api,
  deps: ApiDeps,
  resource: NamedResource<Thing, Content, Input>,
): void {
  const { id, list, kind } = resource;
  const { noun } = kind;
  const names = { noun, Noun: noun.charAt(0).toUpperCase() + noun.slice(1), tags: [TAGS[list]] };
  // What one of its functions answers is what the others take: the routes need not know which kind of thing that is.
  const added = { ...resource, ...names, params: z.strictObject({ id }) } as unknown as Added;
  addListRoute(api, deps, added);
  addGetRoute(api, deps, added);
  addPutRoute(api, deps, added);
  addDryRunRoute(api, deps, added);
  addDeleteRoute(api, deps, added);
}

interface Added extends NamedResource<NamedThing, unknown, unknown> {
  noun: NamedNoun;
  /** With which the names in the document begin. */
  Noun: string;
  tags: string[];
  params: z.ZodObject<{ id: z.ZodType<string> }>;
}

function addListRoute(api: Api, { database }: ApiDeps, added: Added): void {
  const { Noun, list, kind, tags, answered, answer } = added;
  addRoute(api, {
    route: `GET /${list}`,
    operationId: `list${Noun}s`,
    config: { role: 'viewer', scope: 'itself' },
    summary: `List ${list}, by id`,
    tags,
    querystring: namedQuery,
    answers: { 200: json(`A page of ${list}`, pageSchema(answered)) },
    handler: async ({ query: { q, limit, cursor }, caller: { scope } }) => {
      const room = pageRoom();
      const filter = { scope, text: q, after: cursor?.after, limit: limit + 1, room };
      const rows = await database.run((db) => listNamed(db, kind.rows, filter));
      return pageOf({ rows, limit, room }, answer, (last) => ({ after: last.id }));
    },
  });
}

function addGetRoute(api: Api, { database }: ApiDeps, added: Added): void {
  const { noun, Noun, list, kind, params, tags, answered, answer, summaries } = added;
  addRoute(api, {
    route: `GET /${list}/:id`,
    operationId: `get${Noun}`,
    config: { role: 'viewer', scope: { name: noun } },
    summary: summaries.get,
    tags,
    params,
    answers: { 200: json(`The ${noun}`, answered) },
    refusals: [404],
    handler: async ({ params: { id }, caller: { scope } }, reply) => {
      const found = await database.run((db) => findNamed(db, kind.rows, { id, scope }));
      if (!found) throw noSuch(`${noun} ${id}`);
      return reply.header('ETag', etagOf(found)).send(answer(found));
    },
  });
}

function addPutRoute(api: Api, deps: ApiDeps, added: Added): void {
  const { noun, Noun, list, kind, params, tags, input, answered, answer, resolve, summaries } = added;
  addRoute(api, {
    route: `PUT /${list}/:id`,
    operationId: `put${Noun}`,
    config: { role: 'admin', scope: { name: noun }, audits: [`${noun}.put`], alsoCheck: idOfAnother },
    summary: summaries.put,
    tags,
    params,
    headers: preconditionHeaders,
    body: input,
    answers: {
      200: json('Replaced, or as it was: then its version stays', answered),
      201: json('Created', answered),
    },
    refusals: [404, 412, ...added.refusals],
    handler: async ({ params: { id }, headers, body, caller }, reply) => {
      const { thing, change } = await putNamed(audited(deps, { caller }), kind, id, (current, uid) => {
        checkPreconditions(`${noun} ${id}`, headers, current);
        return resolve(body, { current, uid, scope: caller.scope, deps });
      });
      if (change === 'created') void reply.code(201).header('Location', `/api/v1/${list}/${id}`);
      return reply.header('ETag', etagOf(thing)).send(answer(thing));
    },
  });
}

function addDryRunRoute(api: Api, deps: ApiDeps, added: Added): void {
  const { noun, Noun, list, kind, params, tags, input, answer, resolve, refusals } = added;
  addRoute(api, {
    route: `POST /${list}/:id/dry-run`,
    operationId: `try${Noun}`,
    config: { role: 'admin', scope: { name: noun }, audits: [], alsoCheck: idOfAnother },
    summary: 'What PUT would change; changes nothing',
    tags,
    params,
    body: input,
    answers: { 200: json(`What PUT would make of the ${noun}`, namedDiff(noun, Noun, params.shape.id)) },
    refusals: [404, ...refusals],
    handler: async ({ params: { id }, body, caller: { scope } }) => {
      const put = await tryToPutNamed({ ...deps, scope }, kind, id, (current, uid) =>
        resolve(body, { current, uid, scope, deps }),
      );
      return { id, change: put.change, fields: changesIn(put, answer) };
    },
  });
}

function addDeleteRoute(api: Api, deps: ApiDeps, added: Added): void {
  const { noun, Noun, list, kind, params, tags, summaries } = added;
  addRoute(api, {
    route: `DELETE /${list}/:id`,
    operationId: `delete${Noun}`,
    config: { role: 'admin', scope: { name: noun }, audits: [`${noun}.delete`], alsoCheck: unexpectedBody },
    summary: summaries.delete,
    tags,
    params,
    headers: ifMatchHeader,
    answers: { 204: nothing('Deleted') },
    refusals: [404, 409, 412],
    handler: async ({ params: { id }, headers: { 'if-match': match }, caller }, reply) => {
      const removed = await removeNamed(audited(deps, { caller }), kind, id, (current) =>
        checkPreconditions(`${noun} ${id}`, { 'if-match': match }, current),
      );
      if (!removed) throw noSuch(`${noun} ${id}`);
      return reply.code(204).send(null);
    },
  });
}

/** Of a secret value that changes, both sides are masked. */
function changesIn<Thing>({ before, thing, fields }: NamedPut<Thing>, answer: (stored: Thing) => object) {
  const [was, is] = [before ?? thing, thing].map(answer);
  return fields.map((path) => {
    const [before, after] = [was, is].map((one) => valueAt(one, pointerSteps(path) ?? []) ?? null);
    return { path, before, after };
  });
}

const namedQuery = z.strictObject({
  q: text(1000).optional().describe('Part of the id or the description, in any letter case.'),
  limit: limitQuery,
  cursor: scheduleCursor.optional(),
});

const shown = z.unknown().describe('Null: there is none. Secret values are masked.');

function namedDiff(noun: NamedNoun, Noun: string, id: z.ZodType) {
  return z
    .object({
      id,
      change: z.enum(['created', 'updated', 'unchanged']),
      fields: z
        .array(z.object({ path: z.string(), before: shown, after: shown }))
        .describe('The changed fields of an update; `path` is a JSON pointer.'),
    })
    .meta({ id: `${Noun}Diff`, description: `What a write makes of a ${noun}.` });
}
