import { z } from 'zod';
import { MAINTENANCE_DISPATCHES } from '../../core/maintenance.ts';
import { NOT_GIVEN, where } from '../document/kinds.ts';
import { answeredInstant, instant, text } from '../http/common-schemas.ts';

const dispatch = z.enum(MAINTENANCE_DISPATCHES).meta({
  description:
    '`continue`: runs that are recorded already, retries, manual fires and one-off runs are handed off. `hold`: they wait for the end.',
});

const ONLY_WHILE_ON = 'says nothing where `on` is false';

/** A caller can edit the answer of GET and send it back. */
export const maintenanceInput = z
  .strictObject({
    on: z.boolean(),
    reason: text(1000).nullable().default(null).meta({ example: 'the warehouse database moves' }),
    until: instant.nullable().default(null).meta({
      description: 'It ends by itself at this moment; null: it lasts until it is ended.',
    }),
    dispatch: dispatch.default('continue'),
    since: z.unknown().optional().meta({ description: 'Read only, ignored.' }),
  })
  .superRefine(({ on, reason, until, dispatch }, context) => {
    if (on) return;
    const given = { reason: reason !== null, until: until !== null, dispatch: dispatch === 'hold' };
    for (const [name, isGiven] of Object.entries(given))
      if (isGiven) context.addIssue({ code: 'custom', path: [name], message: ONLY_WHILE_ON });
  })
  .meta({
    id: 'MaintenanceRequest',
    ...where('on', [
      { is: true },
      { is: false, properties: { reason: NOT_GIVEN, until: NOT_GIVEN, dispatch: { const: 'continue' } } },
    ]),
  });

export const maintenanceAnswer = z
  .object({
    on: z.boolean().meta({ description: 'While it is on, no instance plans a schedule.' }),
    reason: z.string().nullable(),
    until: answeredInstant.nullable(),
    dispatch,
    since: answeredInstant.nullable().meta({ description: 'When it began.' }),
  })
  .meta({ id: 'Maintenance' });
