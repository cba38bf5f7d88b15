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
    super(`${call}: ${detail ?? `answered ${status}`}`);
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
export async function* listAll(caller: ApiCaller, path: string): AsyncGenerator<Record<string, unknown>, void, void> {
  let cursor: string | null = null;
  do {
    const more: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await ask(caller, 'GET', `${path}${path.includes('?') ? '&' : '?'}limit=500${more}`);
    const { items, nextCursor } = page as { items: Record<string, unknown>[]; nextCursor: string | null };
    yield* items;
    cursor = nextCursor;
  } while (cursor !== null);
}

interface Problem {
  title: string | null;
  detail: string | null;
  faults: Fault[];
}

/** What an answer says of a call that was refused; nothing: it is no problem as the API writes it. */
export function problemOf(text: string): Problem {
  const { title, detail, errors } = objectIn(text);
  return {
    title: typeof title === 'string' ? title : null,
    detail: typeof detail === 'string' ? detail : null,
    faults: Array.isArray(errors) ? (errors as Fault[]) : [],
  };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}
