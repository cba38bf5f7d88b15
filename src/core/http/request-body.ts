import { isoInstant, type Instant } from '../instant.ts';
import type { HttpTarget } from '../schedules/schedule.ts';
import { isParentRun } from '../runs/parent.ts';
import { type BodyValues, type CompiledBody, boundedBody, renderBody } from './body-template.ts';

/** What every body can tell of an attempt. */
interface RequestValues extends BodyValues {
  recovery: { recoveries: number; recoveredAt: Instant } | null;
}

/** A body that is ready for many attempts: its template, if it has one, is compiled. */
export type PreparedBody = 'none' | 'envelope' | 'payload' | CompiledBody;

/** GET and HEAD carry none, whatever is stored. */
export function carriedBody<Body extends HttpTarget<unknown>['body']>(method: string, body: Body): Body | 'none' {
  return method === 'GET' || method === 'HEAD' ? 'none' : body;
}

/** The type that firelock says; null: it says none, since there is no body, or since a header of the user says it. */
export function contentTypeOf(
  body: HttpTarget<string>['body'] | 'none',
  headerNames: readonly string[],
): string | null {
  const isTyped = headerNames.some((name) => name.toLowerCase() === 'content-type');
  if (body === 'none' || isTyped) return null;
  return typeof body === 'string' ? 'application/json' : body.contentType;
}

/** Null: there is no body. Of a notifier's message, the message itself is the envelope. @throws BodyTooLong */
export function writeBody(body: PreparedBody, values: RequestValues): string | null {
  if (body === 'envelope' && values.trigger !== 'notify') return boundedBody(envelopeOf(values));
  if (body === 'none') return null;
  return typeof body === 'string' ? (values.payload ?? '') : renderBody(body, values);
}

/** The payload is inserted as text: parsing would change the digits of its numbers. */
function envelopeOf(values: RequestValues): string {
  const { recovery, parent } = values;
  const recovered =
    recovery === null
      ? 'null'
      : `{"recoveries":${recovery.recoveries},"recoveredAt":"${isoInstant(recovery.recoveredAt)}"}`;
  return (
    `{"runId":${JSON.stringify(values.runId)},"runName":${JSON.stringify(values.runName)}` +
    `,"scheduleId":${JSON.stringify(values.scheduleId)},"scheduledFor":"${isoInstant(values.scheduledFor)}"` +
    `,"trigger":"${values.trigger}","attempt":${values.attempt},"recovery":${recovered}` +
    (values.dependencies.length > 0 ? `,"dependencies":${JSON.stringify(values.dependencies)}` : '') +
    (parent === null || isParentRun(parent) ? '' : `,"parent":${JSON.stringify(parent)}`) +
    `,"payload":${values.payload ?? 'null'}}`
  );
}
