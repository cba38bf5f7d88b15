import { z } from 'zod';
import { ALERT_KINDS } from '../../core/alerts/alert.ts';
import { MAX_INTERVAL_SECONDS } from '../../core/instant.ts';
import { LABEL, answeredInstant, ignored, notifierIdText, text, whole } from '../http/common-schemas.ts';
import { answeredChannel, channelInput } from './channel-setups.ts';

const MAX_FILTERED = 100;

const kinds = z
  .array(z.enum(ALERT_KINDS))
  .min(1)
  .refine((list) => new Set(list).size === list.length, { error: 'must not have a kind twice' })
  .meta({
    description:
      'What it tells of. `failed`: a run ended failed, unknown or abandoned. `late`: no success in time. `unstarted`, `slow`, ' +
      '`tooFast`, `result`: `expect` did not hold. `missed`: an occurrence was not made in time. `paused`: by firelock. `error`: it cannot be planned. ' +
      '`calendar`: one that it excludes ends within 90 days, or has ended.',
    example: ['failed', 'late'],
  });

const patterns = z.array(
  z.string().regex(/^(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,127}\*?)$/, {
    error: 'must be the id of a schedule, or its beginning and a *',
  }),
);
const labels = z.array(text(320).regex(new RegExp(LABEL), { error: 'must be key:value' }));

const filter = z
  .strictObject({
    ids: patterns
      .max(MAX_FILTERED)
      .default([])
      .meta({
        description:
          'Ids, or their beginnings and a `*`: one of them fits. A caller with a scope must name some, all within it.',
        example: ['billing.*'],
      }),
    label: labels
      .max(MAX_FILTERED)
      .default([])
      .meta({ description: '`key:value`: the schedule has all of them.', example: ['team:billing'] }),
  })
  .meta({ id: 'NotifierFilter', description: 'Of which schedules it tells. Empty: of all.' });

const fields = {
  description: text(1000).nullable(),
  enabled: z.boolean().meta({ description: 'false: it is told nothing.' }),
  on: kinds,
  remindSeconds: whole(60, MAX_INTERVAL_SECONDS).nullable().meta({
    description: 'While something stays broken, it is told again after so long. Null: never.',
    example: 86_400,
  }),
  afterFailures: whole(1, 100).meta({
    description:
      'It is told of `failed` once so many runs in a row ended failed, unknown or abandoned, and of the recovery only if it was told.',
    example: 1,
  }),
  fallback: notifierIdText
    .nullable()
    .meta({ description: 'The notifier that gets what could not be delivered.', example: null }),
};

const DAY_SECONDS = 86_400;

export const notifierInput = z
  .strictObject({
    id: notifierIdText.optional(),
    description: fields.description.default(null),
    enabled: fields.enabled.default(true),
    on: fields.on.default([...ALERT_KINDS]),
    filter: filter.prefault({}),
    channel: channelInput,
    remindSeconds: fields.remindSeconds.default(DAY_SECONDS),
    afterFailures: fields.afterFailures.default(1),
    fallback: fields.fallback.default(null),
    version: ignored,
    updatedAt: ignored,
  })
  .meta({ id: 'NotifierDefinition' });
export type NotifierInput = z.output<typeof notifierInput>;

export const notifier = z
  .object({
    id: notifierIdText,
    ...fields,
    filter: z.object({ ids: z.array(z.string()), label: z.array(z.string()) }),
    channel: answeredChannel,
    version: z.int(),
    updatedAt: answeredInstant,
  })
  .meta({ id: 'Notifier', description: 'Who is told what, once when it breaks and once when it heals.' });
