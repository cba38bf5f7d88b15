import type { Problem as ProblemBody } from './generated/types.gen.ts';

export interface Fault {
  /** A JSON pointer into the body, or a parameter's name. */
  path: string;
  message: string;
}

interface Answer {
  status: number;
  headers: Headers;
  /** What the body is, if that is JSON. */
  body: unknown;
  text: string;
}

/** An answer that is an error (RFC 9457), from the daemon or from a proxy before it. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Everything that is wrong with the request. */
  readonly faults: readonly Fault[];
  /** What `Retry-After` says, where the daemon asks for a pause. */
  readonly retryAfterSeconds: number | null;
  /** How the run stands, where the state of a run is why. */
  readonly run: ProblemBody['run'] | null;

  constructor({ status, headers, body, text }: Answer) {
    const fields: Partial<ProblemBody> = typeof body === 'object' && body !== null ? body : {};
    const faults = fields.errors ?? [];
    const title = fields.title ?? `Status ${status}`;
    const detail = fields.detail ?? text.slice(0, 500);
    const listed = faults.map(({ path, message }) => `${path} ${message}`).join('; ');
    super(`${status} ${title}: ${detail}${listed === '' ? '' : ` (${listed})`}`);
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.faults = faults;
    const retryAfter = headers.get('retry-after') ?? '';
    this.retryAfterSeconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
    this.run = fields.run ?? null;
  }

  /** True: the same call may succeed later (408, 429, 5xx). False: it would be refused again. */
  get mayPass(): boolean {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}
