import { z } from 'zod';
import { type Caller, ROLES } from '../../core/access/roles.ts';
import type { Api } from '../deps.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';

export const caller = z
  .object({
    name: z
      .string()
      .nullable()
      .meta({ description: 'Null: this firelock does not ask callers who they are.' }),
    role: z.enum(ROLES).meta({ description: 'What the caller may do.' }),
    scope: z.array(z.string()).nullable().meta({
      description:
        'The caller sees and changes only what has a name that begins with one of these; null: everything.',
    }),
  })
  .meta({ id: 'Caller' });

export function addMeRoute(api: Api): void {
  addRoute(api, {
    ...{ route: 'GET /me', operationId: 'getMe', config: { role: 'any', scope: 'nameless' } },
    summary: 'Who the caller is to firelock, and what they may do',
    ...{ tags: [TAGS.instances], answers: { 200: json('The caller', caller) } },
    handler: (request) => answerCaller(request.caller),
  });
}

export function answerCaller({ name, role, scope }: Caller): z.output<typeof caller> {
  return { name, role, scope: scope === null ? null : [...scope] };
}
