import type { ToldReport } from '../../core/runs/observed/apply-report.ts';
import type { ReportKind } from '../../core/runs/observed/match-report.ts';
import { type Fault, invalid, nothingHere } from '../http/problem.ts';

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

/** The `rid` of a ping. @throws Problem 400, also for parameters that there are not */
export function readQuery(query: Readonly<Record<string, unknown>>): { rid: string | null } {
  const unknown = Object.keys(query).filter((name) => name !== 'rid');
  const faults: Fault[] = unknown.map((path) => ({ path, message: 'is unknown' }));
  const rid = readId('rid', query['rid'], faults);
  if (faults.length > 0) throw invalid(faults);
  return { rid };
}

const STATUSES: ReadonlyMap<unknown, ReportKind> = new Map([
  ['in_progress', 'start'],
  ['ok', 'success'],
  ['error', 'failure'],
]);

/** Sentry's check-in by URL, whose other parameters mean nothing here. @throws Problem 400 */
export function readCheckIn(query: Readonly<Record<string, unknown>>): Said & { rid: string | null } {
  const faults: Fault[] = [];
  const kind = STATUSES.get(query['status']);
  if (kind === undefined) faults.push({ path: 'status', message: 'must be in_progress, ok or error' });
  const rid = readId('check_in_id', query['check_in_id'], faults);
  if (kind === undefined || faults.length > 0) throw invalid(faults);
  return { kind, why: kind === 'failure' ? 'reported as failed' : '', rid };
}

/** A UUID in any form that programs write, in the one that is stored. */
function readId(path: string, sent: unknown, faults: Fault[]): string | null {
  if (sent === undefined) return null;
  const hex = typeof sent === 'string' && UUID.test(sent) ? sent.replaceAll('-', '').toLowerCase() : null;
  if (hex === null) faults.push({ path, message: 'must be a UUID, with or without dashes' });
  return hex === null ? null : hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const UUID = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** The path as logs show it, without the key: anyone who knows a key can report. */
export function withoutPingKeys(url: string): string {
  return url.replace(/(\/ping\/|\/api\/\d+\/cron\/[^/?#]*\/)[^/?#]+/g, '$1***');
}
