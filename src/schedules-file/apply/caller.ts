import { isObject } from '../../api/http/json/json-body.ts';
import { parseKeepingDigits } from '../../core/json-text.ts';
import type { Fault } from '../../api/http/problem.ts';

interface CallAnswer {
  status: number;
  text: string;
}

/** How to call the API: over HTTP, or within the daemon. Paths are below /api/v1. Throws if there is no answer. */
export interface ApiCaller {
  send(method: string, path: string, body?: string, headers?: Record<string, string>): Promise<CallAnswer>;
}

/** The API has refused a call. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  readonly faults: readonly Fault[];

  constructor(call: string, { status, text }: CallAnswer) {
    const { detail, faults } = problemOf(text);
    super(`${call}: ${detail === '' ? `answered ${status}` : detail}`);
    this.status = status;
    this.faults = faults;
  }
}

/** The answer as a tree whose numbers keep their digits. @throws Refused */
export async function ask(caller: ApiCaller, ...[method, path, ...rest]: Parameters<ApiCaller['send']>) {
  const answer = await caller.send(method, path, ...rest);
  if (answer.status < 200 || answer.status >= 300) throw new Refused(`${method} ${path}`, answer);
  return answer.text === '' ? null : parseKeepingDigits(answer.text);
}

/** All items of a list, page by page. */
export async function* listAll(
  caller: ApiCaller,
  path: string,
): AsyncGenerator<Record<string, unknown>, void, void> {
  let cursor: string | null = null;
  do {
    const more: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await ask(caller, 'GET', `${path}${path.includes('?') ? '&' : '?'}limit=500${more}`);
    const { items, nextCursor } = page as { items: Record<string, unknown>[]; nextCursor: string | null };
    yield* items;
    cursor = nextCursor;
  } while (cursor !== null);
}

function problemOf(text: string): { detail: string; faults: Fault[] } {
  try {
    const problem: unknown = JSON.parse(text);
    if (!isObject(problem)) return { detail: '', faults: [] };
    const { detail, errors } = problem;
    return {
      detail: typeof detail === 'string' ? detail : '',
      faults: Array.isArray(errors) ? (errors as Fault[]) : [],
    };
  } catch {
    return { detail: '', faults: [] };
  }
}
