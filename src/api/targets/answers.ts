import type { HttpCall, Target } from '../../core/schedules/schedule.ts';
import { MASK } from './http-call-schemas.ts';

/** Header values masked. */
export function answerTarget(target: Target) {
  if (target.type === 'pull') return { type: target.type, queue: target.queue };
  const { type, lookup, cancel } = target;
  return {
    type,
    ...masked(target),
    lookup: lookup && masked(lookup),
    cancel: cancel && masked(cancel),
  };
}

function masked({ url, method, headers }: HttpCall): HttpCall {
  return { url, method, headers: Object.fromEntries(Object.keys(headers).map((name) => [name, MASK])) };
}
