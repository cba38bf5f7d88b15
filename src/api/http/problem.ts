import { STATUS_CODES } from 'node:http';
import { OperationRefused } from '../../operations/operation-refused.ts';
import { NotNow, isDataRefused, isRepeatable, isUnavailable } from '../../postgres/errors.ts';
import { OUT_OF_REACH, databaseTrouble } from '../../core/database-trouble.ts';
import { CronError } from '../../core/cron/cron.ts';
import type { Run } from '../../core/runs/run.ts';

type RunSummary = Pick<Run, 'status' | 'reason' | 'attempts'>;

/** One thing that is wrong with a request. */
export interface Fault {
  /** A JSON pointer into the body, or a parameter's name. */
  path: string;
  message: string;
}

/** An answer that reports a problem (RFC 9457); the code that finds the problem throws it. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly faults: readonly Fault[];
  readonly headers: Readonly<Record<string, string>>;
  /** The present status of the run, if it did not allow the call. */
  readonly run: RunSummary | undefined;

  constructor(
    status: number,
    detail: string,
    more: {
      faults?: readonly Fault[];
      headers?: Record<string, string>;
      run?: RunSummary;
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: more.cause });
    this.status = status;
    this.faults = more.faults ?? [];
    this.headers = more.headers ?? {};
    this.run = more.run;
  }
}

interface ProblemBody {
  type: string;
  title: string;
  status: number;
  detail: string;
  errors?: Fault[];
  run?: RunSummary;
}

export const PROBLEM_TYPE = 'application/problem+json';

export function problemBody({ status, message, faults, run }: Problem): ProblemBody {
  const title = STATUS_CODES[status] ?? 'Error';
  const body = { type: 'about:blank', title, status, detail: message, ...(run && { run }) };
  return faults.length === 0 ? body : { ...body, errors: [...faults] };
}

/** A person does not read more; it also bounds the work that a hostile body can cause. */
export const MAX_FAULTS = 10_000;

export function invalid(faults: readonly Fault[], status = 400): Problem {
  const answered = faults.slice(0, MAX_FAULTS).map(shortened);
  const [first] = answered;
  if (answered.length === 1 && first) {
    return new Problem(status, `${first.path === '' ? 'the body' : first.path} ${first.message}`, {
      faults: answered,
    });
  }
  const detail =
    faults.length <= MAX_FAULTS
      ? `${faults.length} faults in the request, see errors`
      : `more faults in the request than are looked for: errors has the first ${MAX_FAULTS}`;
  return new Problem(status, detail, { faults: answered });
}

/** Longer than the path of any field. */
const MAX_PATH_LENGTH = 500;

/** A caller may send megabytes as a name. */
function shortened({ path, message }: Fault): Fault {
  return path.length <= MAX_PATH_LENGTH ? { path, message } : { path: `${path.slice(0, MAX_PATH_LENGTH)}…`, message };
}

export function nothingHere(): Problem {
  return new Problem(404, 'there is nothing at this path');
}

/** @param what such as `run 019a…` */
export function noSuch(what: string): Problem {
  return new Problem(404, `there is no ${what}`);
}

export function unavailable(detail: string, cause?: unknown): Problem {
  return new Problem(503, detail, { headers: { 'Retry-After': '5' }, cause });
}

/** An unforeseen error: the log names it, the answer does not. */
export function unforeseen(cause: unknown): Problem {
  return new Problem(500, 'the server failed unexpectedly; its log has the details', { cause });
}

/**
 * The answer to anything thrown while a request was served. An unforeseen error is 500, without details.
 * @param bodyLimit bytes that the body may have
 */
export function toProblem(error: unknown, bodyLimit?: number): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof OperationRefused)
    return error.faults.length > 0 ? invalid(error.faults, error.status) : new Problem(error.status, error.message);
  if (error instanceof NotNow) return unavailable(error.message, error);
  const trouble = databaseTrouble(error) ?? (isUnavailable(error) ? OUT_OF_REACH : null);
  if (trouble !== null) return unavailable(trouble, error);
  if (isRepeatable(error)) return unavailable('too many calls change the same rows at once', error);
  if (isDataRefused(error)) {
    return new Problem(400, 'the request has a value that the database cannot store', { cause: error });
  }
  const status = clientErrorStatus(error);
  if (status !== null && error instanceof Error) return new Problem(status, detailOf(status, error, bodyLimit));
  return unforeseen(error);
}

/** Refusals of the framework carry their status; below 500, their text is only about the request. */
function clientErrorStatus(error: unknown): number | null {
  if (!(error instanceof Error) || !('statusCode' in error)) return null;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : null;
}

function detailOf(status: number, error: Error, bodyLimit: number | undefined): string {
  if (status === 413) return `the body is larger than ${bodyLimit ?? 0} bytes`;
  if (status === 415) return 'the body must be application/json (or, with PATCH, application/merge-patch+json)';
  return error.message;
}

/** The problem to throw if the fire times of a stored schedule cannot be computed. */
export function asUnplannable(id: string, error: unknown): unknown {
  if (!(error instanceof CronError)) return error;
  return new Problem(409, `schedule ${id} cannot be planned: ${error.message}`, { cause: error });
}
