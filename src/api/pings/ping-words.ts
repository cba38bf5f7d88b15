import { z } from 'zod';
import type { ReportKind, ToldReport } from '../../core/runs/observed-report.ts';
import { invalid, nothingHere } from '../http/problem.ts';
import { checkValue, parameter } from '../http/validation.ts';

type Said = Pick<ToldReport, 'kind' | 'why'>;

const WORDS: Readonly<Record<string, Said | undefined>> = {
  '': { kind: 'success', why: '' },
  start: { kind: 'start', why: '' },
  fail: { kind: 'failure', why: 'reported as failed' },
  log: { kind: 'log', why: '' },
};

/** What `/ping/KEY/WORD` says. @throws Problem 404 */
export function readWord(word: string): Said {
  const said = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  if (said) return said;
  if (!/^(?:0|[1-9]\d{0,2})$/.test(word) || Number(word) > 255) throw nothingHere();
  return Number(word) === 0
    ? { kind: 'success', why: '' }
    : { kind: 'failure', why: `the job ended with exit code ${word}` };
}

const UUID = /^(?:[\da-fA-F]{32}|[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12})$/;

/** In any form that programs write, to the one that is stored. */
const rid = z
  .string()
  .regex(UUID, { error: 'must be a UUID, with or without dashes' })
  .overwrite((text) =>
    text
      .replaceAll('-', '')
      .toLowerCase()
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  )
  .optional()
  .meta({
    description: 'Joins the reports of one execution.',
    example: '0197b6de-0000-7000-8000-00000000abcd',
  });

export const pingQuery = z.strictObject({ rid });

/** @throws Problem 400, also for parameters that there are not */
export function readQuery(query: unknown): { rid: string | null } {
  return { rid: read(pingQuery, query).rid ?? null };
}

const STATUSES = { in_progress: 'start', ok: 'success', error: 'failure' } as const satisfies Record<
  string,
  ReportKind
>;

/** Sentry's check-in by URL, whose other parameters mean nothing here. */
export const checkInQuery = z.object({
  status: z.enum(['in_progress', 'ok', 'error']).meta({ example: 'ok' }),
  check_in_id: rid,
});

/** @throws Problem 400 */
export function readCheckIn(query: unknown): Said & { rid: string | null } {
  const { status, check_in_id: checkInId } = read(checkInQuery, query);
  const kind = STATUSES[status];
  return { kind, why: kind === 'failure' ? 'reported as failed' : '', rid: checkInId ?? null };
}

function read<T>(schema: z.ZodType<T>, query: unknown): T {
  const checked = checkValue(schema, query, parameter);
  if ('faults' in checked) throw invalid(checked.faults);
  return checked.value;
}

/** The path as logs show it, without keys, however they are written: anyone who knows a key can report. */
export function withoutPingKeys(url: string): string {
  const plain = url.replace(/%([2-7][\da-f])/gi, (_, code: string) =>
    String.fromCharCode(parseInt(code, 16)),
  );
  const masked = plain.replace(/(\/ping[/?]+|\/api\/\d+\/+cron\/+[^/?#]*\/+)[^/?#]+/gi, '$1***');
  return masked === plain ? url : masked;
}
