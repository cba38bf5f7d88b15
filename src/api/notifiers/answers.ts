import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import type { StoredNotifier } from '../../store/notifiers/rows.ts';
import { CHANNEL_SETUPS } from './channel-setups.ts';
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
    channel: CHANNEL_SETUPS[stored.channel].answerOf(stored.target as never),
    remindSeconds,
    afterFailures,
    fallback,
    version,
    updatedAt: isoInstant(updatedAt),
  };
}
