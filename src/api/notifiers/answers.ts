import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import type { StoredNotifier } from '../../store/notifiers/find-notifiers.ts';
import { answerHttpTarget } from '../targets/answers.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import type { notifier } from './schemas.ts';

type Answer = z.output<typeof notifier>;

/** With its secret values masked. Answers never decrypt anything. */
export function answerNotifier(stored: StoredNotifier): Answer {
  const { id, description, enabled, on, filter, remindSeconds, afterFailures, fallback, version, updatedAt } =
    stored;
  return {
    id,
    description,
    enabled,
    on: [...on],
    filter: { ids: [...filter.ids], label: [...filter.label] },
    channel: answerChannel(stored),
    remindSeconds,
    afterFailures,
    fallback,
    version,
    updatedAt: isoInstant(updatedAt),
  };
}

function answerChannel({ id, channel, target }: StoredNotifier): Answer['channel'] {
  if (channel === 'email' && target.type === 'email') return { type: channel, to: target.to };
  if (channel === 'pagerduty' && target.type === 'pagerduty')
    return { type: channel, target: answerHttpTarget(target.target), routingKey: MASK };
  if ((channel === 'webhook' || channel === 'slack') && target.type === 'http')
    return { type: channel, target: answerHttpTarget(target) };
  throw new Error(`the notifier ${id} is of the channel ${channel}, and has a target of type ${target.type}`);
}
