import { z } from 'zod';
import { ROLES } from '../../core/access/roles.ts';
import type { Api } from '../deps.ts';
import { TAGS } from '../document/openapi.ts';
import { json, problems } from '../http/response-schemas.ts';

export const caller = z
  .object({
    name: z
      .string()
      .nullable()
      .meta({ description: 'Null: this firelock does not ask callers who they are.' }),
    role: z.enum(ROLES).meta({ description: 'What the caller may do.' }),
  })
  .meta({ id: 'Caller' });

export function addMeRoute(api: Api): void {
  api.get(
    '/me',
    {
      config: { role: 'any' },
      schema: {
        operationId: 'getMe',
        summary: 'Who the caller is to firelock, and what they may do',
        tags: [TAGS.instances],
        response: { 200: json('The caller', caller), ...problems(400) },
      },
    },
    ({ caller: { name, role } }): z.output<typeof caller> => ({ name, role }),
  );
}
