import { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import { listInstances } from '../../store/instances/list-instances.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { TAGS } from '../document/openapi.ts';
import { json, problems } from '../http/response-schemas.ts';
import { answeredInstant } from '../http/common-schemas.ts';

export const instanceList = z.object({
  items: z.array(
    z
      .object({
        id: z.string().meta({ format: 'uuid' }),
        host: z.string(),
        version: z.string(),
        zoneData: z.string().meta({
          description:
            'Version of the time zone data that it plans with. Where the living differ, /readyz warns.',
          example: '2026c',
        }),
        startedAt: answeredInstant,
        heartbeatAt: answeredInstant,
        alive: z.boolean(),
        inFlight: z.int().meta({ description: 'Runs it has claimed and not settled.' }),
      })
      .meta({ id: 'Instance' }),
  ),
});

export function addInstanceRoutes(api: Api, { database }: ApiDeps): void {
  api.get(
    '/instances',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'listInstances',
        summary: 'The daemon processes, newest first; the dead stay listed for a day',
        tags: [TAGS.instances],
        response: { 200: json('All instances', instanceList), ...problems(400) },
      },
    },
    async (): Promise<z.output<typeof instanceList>> => {
      const listed = await database.run((db) => listInstances(db));
      return {
        items: listed.map(({ id, host, version, zoneData, startedAt, heartbeatAt, alive, inFlight }) => ({
          id,
          host,
          version,
          zoneData,
          startedAt: isoInstant(startedAt),
          heartbeatAt: isoInstant(heartbeatAt),
          alive,
          inFlight,
        })),
      };
    },
  );
}
