import type { HttpTarget } from '../../src/core/schedules/schedule.ts';

/** An HTTP target with the API's defaults. */
export function targetAt(url: string, rest: Partial<HttpTarget<string>> = {}): HttpTarget<string> {
  return {
    type: 'http',
    connection: null,
    url,
    method: 'POST',
    headers: {},
    body: 'envelope',
    outcome: null,
    secret: null,
    lookup: null,
    cancel: null,
    ...rest,
  };
}
