import { payloadOf } from '../../../../src/core/alerts/texts/channels.ts';
import { pagingBody } from '../../../../src/core/alerts/texts/pagerduty-event.ts';
import type { AlertKind } from '../../parts/alerts/alert-kinds.ts';
import { type Added, type Sent, requestOf } from '../../parts/endpoint/sent.ts';
import { secretDraftOf } from '../../parts/forms/pair.ts';
import type { NotifierDraft } from './notifier-draft.ts';

const ERRORS: Partial<Record<AlertKind, string>> = { failed: 'the target answered 503' };
const SCHEDULE = 'billing.invoices';
const RUN = '019ac0de-0000-7000-8000-000000000000';
const MINUTE_MS = 60_000;

/** What a channel is told when something breaks: the payload of such a message, written by the daemon's code. */
function payloadIn({ channel, on }: NotifierDraft, notifier: string, at: number): string {
  const kind = (on[0] ?? 'failed') as AlertKind;
  return payloadOf(channel, {
    ...{ notifier, event: 'opened', at, more: 0, fallbackFor: null },
    alerts: [
      {
        ...{ id: '019ac0de-0000-7000-8000-000000000002', scheduleId: SCHEDULE, kind },
        ...{ since: at - MINUTE_MS, until: null, error: ERRORS[kind] ?? null, overBy: null },
        ...(kind === 'failed' ? { runId: RUN, status: 'failed' } : { runId: null, status: null }),
        labels: { team: 'billing' },
        url: `https://firelock.example.com/schedules/${SCHEDULE}`,
      },
    ],
  });
}

/** The request of a message. `connection`: the one that is named; null: none is, or it cannot be read. */
export function sentOf(draft: NotifierDraft, notifier: string, at: number, connection: Added | null): Sent {
  const payload = payloadIn(draft, notifier, at);
  return requestOf(
    draftOfBody(draft),
    {
      ...{ runId: RUN, runName: null, scheduleId: null, scheduledFor: at, trigger: 'notify', attempt: 1 },
      ...{ recovery: null, dependencies: [], parent: null },
      payload,
    },
    connection,
  );
}

/** The other channels have a body of their own. */
function draftOfBody(draft: NotifierDraft): NotifierDraft {
  if (draft.channel === 'webhook') return draft;
  if (draft.channel !== 'pagerduty') return { ...draft, bodyKind: 'envelope' };
  const { template, contentType, secrets = {} } = pagingBody('***');
  return { ...draft, bodyKind: 'template', template, contentType, bodySecrets: secretDraftOf(secrets) };
}

/** The mail of such a message. */
export function mailOf(draft: NotifierDraft, notifier: string, at: number): { subject: string; text: string } {
  return JSON.parse(payloadIn(draft, notifier, at)) as { subject: string; text: string };
}
