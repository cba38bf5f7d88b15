import { isoInstant, isoOrNull } from '../../instant.ts';
import type { BodyTemplate, HttpTarget } from '../../schedules/schedule.ts';
import type { AlertKind, Message } from '../alert.ts';
import { alertText, inOneLine, titleOf } from './sentences.ts';

/** Of the Events API v2. */
const MAX_SUMMARY = 1_024;

const SEVERITIES: Record<AlertKind, 'critical' | 'error' | 'warning'> = {
  failed: 'error',
  late: 'critical',
  unstarted: 'warning',
  slow: 'warning',
  tooFast: 'warning',
  result: 'warning',
  missed: 'error',
  paused: 'critical',
  error: 'critical',
  calendar: 'warning',
};

/** The body of a request, of what `pagerDutyEvent` says and the routing key, which is secret: no run has it in its payload. */
export function pagingBody<Secret>(routingKey: Secret): BodyTemplate<Secret> {
  return { template: TEMPLATE, contentType: 'application/json', secrets: { routingKey } };
}

const TEMPLATE =
  '{"routing_key":{{secret/routingKey}},"event_action":{{payload/event_action}},"dedup_key":{{payload/dedup_key}},' +
  '"client":"firelock","client_url":{{payload/client_url}},"links":{{payload/links}},"payload":{{payload/payload}}}';

/** The routing key of a target with such a body; undefined: it has none. */
export function routingKeyOf<Secret>({ body }: HttpTarget<Secret>): Secret | undefined {
  return typeof body === 'string' ? undefined : body.secrets?.['routingKey'];
}

/**
 * An event of PagerDuty's Events API v2. An incident is known by the id of its episode: so a reminder repeats it, and the end resolves it.
 */
export function pagerDutyEvent(message: Message): object {
  const { event, notifier, at, alerts, fallbackFor } = message;
  const [alert] = alerts;
  if (!alert) return testEvent(message);
  const { headline, when, error, meaning } = alertText(message, alert, MAX_SUMMARY);
  const { id, scheduleId, kind, since, until, runId, status, labels, url } = alert;
  return {
    event_action: event === 'recovered' ? 'resolve' : 'trigger',
    dedup_key: id,
    client_url: url ?? '',
    links: url === null ? [] : [{ href: url, text: `${scheduleId} in firelock` }],
    payload: {
      summary: inOneLine(error === null ? headline : `${headline}: ${error}`, MAX_SUMMARY),
      source: scheduleId,
      severity: SEVERITIES[kind],
      timestamp: isoInstant(since),
      class: kind,
      custom_details: {
        ...{ when, meaning, error, runId, status },
        ...{ since: isoInstant(since), until: isoOrNull(until), at: isoInstant(at), notifier, labels },
        ...(fallbackFor !== null && { fallbackFor }),
      },
    },
  };
}

/** It opens an incident, as any other event would: that is what is tested. */
function testEvent(message: Message): object {
  const { notifier, at } = message;
  return {
    event_action: 'trigger',
    dedup_key: `firelock test of ${notifier}`,
    client_url: '',
    links: [],
    payload: {
      summary: titleOf(message),
      source: notifier,
      severity: 'info',
      timestamp: isoInstant(at),
      class: 'test',
    },
  };
}
