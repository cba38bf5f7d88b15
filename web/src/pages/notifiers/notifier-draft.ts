import type { Notifier } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { ALERT_KINDS } from '../../parts/alerts/alert-kinds.ts';
import { type Fault, linesOf } from '../../parts/endpoint/endpoint-draft.ts';
import { EMPTY_HTTP, type HttpDraft, httpDraftOf, httpFaults, httpTargetOf } from '../../parts/endpoint/http-draft.ts';

export type Channel = Notifier['channel'];

/** What is typed so far. The fields of each channel stay while another one is chosen. */
export interface NotifierDraft extends HttpDraft {
  enabled: boolean;
  on: readonly string[];
  /** One a line; as `labels`. */
  ids: string;
  labels: string;
  channel: Channel['type'];
  routingKey: string;
  /** One a line. */
  to: string;
  /** Seconds; empty: never. */
  remindSeconds: string;
  /** Runs in a row. */
  afterFailures: string;
  /** Empty: none. */
  fallback: string;
}

const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue';
const DAY_SECONDS = '86400';

export const EMPTY: NotifierDraft = {
  ...EMPTY_HTTP,
  ...{ enabled: true, on: ALERT_KINDS.map(([kind]) => kind), ids: '', labels: '' },
  ...{
    channel: 'webhook',
    routingKey: '',
    to: '',
    remindSeconds: DAY_SECONDS,
    afterFailures: '1',
    fallback: '',
  },
};

/** Secret values are answered as ***, which sent back keeps them. */
export function draftOf({ enabled, on, filter, channel, ...rest }: Notifier): NotifierDraft {
  return {
    ...(channel.type === 'email' ? EMPTY_HTTP : httpDraftOf(channel.target)),
    ...{ enabled, on, ids: filter.ids.join('\n'), labels: filter.label.join('\n'), channel: channel.type },
    routingKey: channel.type === 'pagerduty' ? channel.routingKey : '',
    to: channel.type === 'email' ? channel.to.join('\n') : '',
    remindSeconds: rest.remindSeconds === null ? '' : String(rest.remindSeconds),
    afterFailures: String(rest.afterFailures),
    fallback: rest.fallback ?? '',
  };
}

/** What to send, but for the description. `stored`: what the form was made of. */
export function bodyOf(draft: NotifierDraft, stored: Notifier | null): Record<string, unknown> {
  const { enabled, on, fallback, remindSeconds, afterFailures } = draft;
  return {
    enabled,
    on,
    filter: { ids: linesOf(draft.ids), label: textLinesOf(draft.labels) },
    channel: channelOf(draft, stored?.channel ?? null),
    remindSeconds: remindSeconds.trim() === '' ? null : numberOf(remindSeconds),
    afterFailures: afterFailures.trim() === '' ? 1 : numberOf(afterFailures),
    fallback: fallback.trim() || null,
  };
}

/** What is no number goes as it is, so that the daemon says so. */
function numberOf(text: string): number | string {
  return Number.isNaN(Number(text)) ? text : Number(text);
}

function channelOf(draft: NotifierDraft, stored: Channel | null): Record<string, unknown> {
  const { channel: type } = draft;
  if (type === 'email') return { type, to: linesOf(draft.to) };
  const target = httpTargetOf(draft, stored === null || stored.type === 'email' ? null : stored.target);
  if (type === 'webhook') return { type, target };
  const told = { ...target, body: 'envelope' };
  return { type, target: told, ...(type === 'pagerduty' && { routingKey: draft.routingKey.trim() }) };
}

/** Of another channel: where PagerDuty takes events is known. */
export function withChannel({ url }: NotifierDraft, channel: Channel['type']): Partial<NotifierDraft> {
  if (channel === 'pagerduty') return { channel, url: url === '' ? PAGERDUTY_URL : url };
  return { channel, url: url === PAGERDUTY_URL ? '' : url };
}

/** What cannot be sent at all, and so the daemon cannot say. */
export function faultsOf(draft: NotifierDraft): Fault[] {
  return draft.channel === 'email' ? [] : httpFaults(draft);
}

/** The fields of an HTTP target know it as /target. */
export function inForm({ path, message }: Fault): Fault {
  return { path: path.replace(/^\/channel(?=\/target)/, ''), message };
}

/** A label may have spaces in it. */
function textLinesOf(text: string): string[] {
  return text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}
