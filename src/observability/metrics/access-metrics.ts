import { Counter, type Registry } from 'prom-client';
import { BROWSER_REFUSALS, FAILED_AUTHENTICATION } from '../../core/access/access-events.ts';
import type { Handlers } from '../handlers.ts';

const REASONS = [
  ...FAILED_AUTHENTICATION,
  ...BROWSER_REFUSALS,
  'role',
  'tooManyFailures',
  'tooManyCalls',
  'tooManyAtOnce',
];

/** Calls that the API refused because of their caller. No label names a caller. */
export function accessHandlers(registry: Registry): Handlers {
  const refused = new Counter({
    name: 'firelock_calls_refused_total',
    help: 'API calls answered 401 (no valid token), 403 (the role, or a page of another site, may not) or 429 (too many), by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of REASONS) refused.inc({ reason }, 0);
  return { callRefused: ({ reason }) => refused.inc({ reason }) };
}
