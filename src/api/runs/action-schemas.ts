import { z } from 'zod';
import { NOT_GIVEN, where } from '../document/kinds.ts';
import { whole } from '../http/common-schemas.ts';
import { workerIdText } from '../queues/schemas.ts';
import { ALWAYS } from '../schedules/timing/timing-schemas.ts';

const attempt = whole(1, 2 ** 31 - 1)
  .nullable()
  .default(null)
  .meta({
    description:
      'The `attempt` that was handed over: where another one has started since, it is 409. Null: whichever is current.',
    example: 1,
  });

const workerId = workerIdText
  .nullable()
  .default(null)
  .meta({
    description:
      'The worker that claimed it: a run that a worker has claimed answers 409 without it, and with that of another one. Null: it is ' +
      'no run of a worker.',
  });

/** The body has no fields. */
export const noInput = z.strictObject({}).optional();

export const completionInput = z
  .strictObject({
    status: z
      .enum(['succeeded', 'failed'])
      .meta({ description: '`failed` is final: it is not tried again.' }),
    result: z.unknown().optional().meta({
      description:
        'Kept as the `result.body` of the run: a string as it is, anything else as its JSON; cut at 4 KiB.',
    }),
    error: z.string().nullable().default(null).meta({
      description: 'Why it failed; only with `failed`. Kept as the `error.message` of the run, cut at 4 KiB.',
    }),
    attempt,
    workerId,
  })
  .superRefine(({ status, error }, context) => {
    if (status === 'succeeded' && typeof error === 'string')
      context.addIssue({ code: 'custom', path: ['error'], message: 'goes only with the status failed' });
  }, ALWAYS)
  .meta({
    id: 'Completion',
    description: 'How a run ended.',
    ...where('status', [{ is: 'succeeded', properties: { error: NOT_GIVEN } }, { is: 'failed' }]),
  });

export const heartbeatInput = z
  .strictObject({
    attempt,
    workerId,
    progress: z.number().min(0).max(1).nullable().default(null).meta({
      description: 'How much of it is done, 0 … 1. Null: as it was.',
      example: 0.25,
    }),
  })
  .prefault({})
  .meta({ id: 'Heartbeat', description: 'It is still being worked on.' });
