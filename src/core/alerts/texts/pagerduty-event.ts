import { isoInstant, isoOrNull } from '../../instant.ts';
import type { AlertKind } from '../alert.ts';
import type { Message } from '../message.ts';
import { alertText, inOneLine, titleOf } from './sentences.ts';

/** Of the Events API v2. */
const MAX_SUMMARY = 1_024;

const SEVERITIES: Record<AlertKind, 'critical' | 'error' | 'warning'> = {
  failed: 'error',
  late: 'critical',
  unstarted: 'warning',
  slow: 'warning',
  missed: 'error',
  paused: 'critical',
  error: 'critical',
};

/**
 * An event of PagerDuty's Events API v2, without `routing_key`, which is secret and added as it is sent. An incident is known by the
 * id of its episode: so a reminder repeats it, and the end resolves it.
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
    client: 'firelock',
    ...(url !== null && { client_url: url, links: [{ href: url, text: `${scheduleId} in firelock` }] }),
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
    client: 'firelock',
    payload: {
      summary: titleOf(message),
      source: notifier,
      severity: 'info',
      timestamp: isoInstant(at),
      class: 'test',
    },
  };
}
