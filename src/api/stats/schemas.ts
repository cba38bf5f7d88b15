import { z } from 'zod';

const count = (description?: string) => z.int().meta({ minimum: 0, ...(description && { description }) });
const rate = (description: string) =>
  z
    .number()
    .nullable()
    .meta({ minimum: 0, maximum: 1, description: `${description}; null where there was none.` });
const milliseconds = z.int().nullable();

export const stats = z
  .object({
    totalRuns: count(),
    succeededRuns: count(),
    failedRuns: count(),
    unknownRuns: count(),
    abandonedRuns: count(),
    skippedRuns: count(),
    cancelledRuns: count(),
    openRuns: count('`waiting`, `pending` or `running`.'),
    lostRuns: count('Ever found with an intent and a claimant that was gone.'),
    recoveredRuns: count('Of those, handed off since.'),
    successRate: rate('Succeeded of those that succeeded, failed, are unknown or were abandoned'),
    recovery: z.object({
      attempts: count('Take-overs by recovery.'),
      succeeded: count('Lost runs that were handed off since.'),
      failed: count('Lost runs that never were, and ended `failed` or `unknown`.'),
      abandoned: count('Lost runs that never were, and were given up.'),
      successRate: rate('Succeeded of these three'),
    }),
    lateness: z
      .object({ p50Ms: milliseconds, p95Ms: milliseconds, p99Ms: milliseconds, maxMs: milliseconds })
      .meta({ description: 'Of `latenessMs`, nearest rank; null where no run has one.' }),
  })
  .meta({ id: 'Stats' });
