import { z } from 'zod';
import { ON_DEPENDENCY_FAILURE } from '../../core/runs/run.ts';
import { MAX_ITEMS } from '../http/json/json-parts.ts';
import {
  answeredInstant,
  instant,
  labelName,
  labelsNamed,
  runIdText,
  runStatus,
  text,
} from '../http/common-schemas.ts';
import { handoffInput, turnInput } from '../targets/handoff-schemas.ts';

export const MAX_DEPENDENCIES = 1000;

const REF = /^[A-Za-z0-9._-]{1,128}$/;

const ref = z
  .string()
  .regex(REF, { error: 'must be 1 to 128 letters (A-Z, a-z), digits, dots, dashes or underscores' })
  .meta({ description: 'By which other items of this call name it.', example: 'load' });

const oneOffFields = {
  ...handoffInput,
  key: text(256)
    .min(1)
    .meta({ maxLength: 256 })
    .nullable()
    .default(null)
    .meta({
      description:
        'Unique over all one-off runs, as long as its run is kept: the same key with the same body answers the run it made, ' +
        'with another body 422.',
      example: 'invoice-4711',
    }),
  runAt: instant.nullable().default(null).meta({
    description: 'Not before then; null, or in the past, however long ago: at once. The `scheduledFor` of the run.',
  }),
  onDependencyFailure: z
    .enum(ON_DEPENDENCY_FAILURE)
    .default('fail')
    .describe(
      'What becomes of it when a run that it depends on does not end as `succeeded`: it fails without having been started ' +
        '(`error.kind` is `dependency`), or runs all the same.',
    ),
  ...turnInput,
  labels: labelsNamed(labelName),
};

export const oneOffRunInput = z
  .strictObject({
    ...oneOffFields,
    dependsOn: z.array(runIdText).max(MAX_DEPENDENCIES).default([]).meta({
      uniqueItems: true,
      description: 'Ids of the runs that have to end before it starts; their ends go with its handoff.',
    }),
  })
  .meta({
    id: 'OneOffRun',
    description: 'A piece of work that is done once, of no schedule.',
  });
export type OneOffRunInput = z.output<typeof oneOffRunInput>;

/** Its dependencies are checked with all items together (dependency-faults.ts). */
export const oneOffItemInput = z
  .strictObject({
    ref,
    ...oneOffFields,
    dependsOn: z
      .array(z.string().meta({ pattern: REF.source }))
      .max(MAX_DEPENDENCIES)
      .default([])
      .meta({
        uniqueItems: true,
        description:
          'What has to end before it starts: the `ref` of another item of this call, before or after it, or the id of a run.',
        example: ['extract', '019a9f00-0000-7000-8000-000000000000'],
      }),
  })
  .meta({ id: 'OneOffRunWithRef', description: 'A one-off run that other items of the call can name.' });
export type OneOffItemInput = z.output<typeof oneOffItemInput>;

export const besideRuns = {
  name: text(128).min(1).meta({ maxLength: 128 }).nullable().default(null).meta({
    description: 'What people call the whole; need not be unique.',
    example: 'etl 2026-11-20',
  }),
  labels: labelsNamed(labelName).describe('Of all of its runs; those of an item are added to them, and win.'),
};

export const oneOffBatchInput = z.strictObject({
  ...besideRuns,
  items: z.array(oneOffItemInput).max(MAX_ITEMS),
});

const uuid = z.string().meta({ format: 'uuid' });

export const oneOffBatchAnswer = z.object({
  batchId: uuid
    .nullable()
    .describe('Of the new runs; if none is new, the one that all of them are in. Null: there is none.'),
  items: z.array(z.object({ ref: z.string(), id: uuid })).describe('In the order in which they were sent.'),
});

export const batchIdParams = z.strictObject({ batchId: runIdText.describe('Of a batch.') });

export const batchAnswer = z
  .object({
    id: uuid,
    name: z.string().nullable(),
    labels: z.record(z.string(), z.string()),
    createdAt: answeredInstant,
    items: z
      .array(
        z.object({
          ref: z.string(),
          id: uuid,
          status: runStatus,
          dependsOn: z.array(z.string()).meta({
            description: 'Refs; of runs that are not in the batch, their ids.',
            example: ['extract'],
          }),
        }),
      )
      .describe('Its runs that are still kept, in the order in which they were sent.'),
  })
  .meta({ id: 'Batch', description: 'Runs that were asked for in one call.' });
