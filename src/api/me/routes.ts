import { z } from 'zod';
import type { Api } from '../deps.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { json, problems } from '../http/response-schemas.ts';

const caller = z
  .object({
    name: z.string().nullable().meta({ description: 'Null: firelock does not ask callers who they are.' }),
    role: z.enum(['viewer', 'worker', 'operator', 'admin']).meta({ description: 'What the caller may do.' }),
  })
  .meta({ id: 'Caller' });

export function addMeRoute(api: Api): void {
  api.get(
    '/me',
    {
      schema: {
        operationId: 'getMe',
        summary: 'Who the caller is to firelock, and what they may do',
        tags: [TAGS.instances],
        response: { 200: json('The caller', caller), ...problems(400) },
      },
    },
    // No caller is asked for a name yet, so each caller may do everything.
    (): z.output<typeof caller> => ({ name: null, role: 'admin' }),
  );
}
