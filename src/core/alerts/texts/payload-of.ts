import { isoInstant, isoOrNull } from '../../instant.ts';
import type { Message } from '../message.ts';
import type { ChannelType } from '../notifier.ts';

export function payloadOf(_channel: ChannelType, { at, alerts, ...message }: Message): string {
  const told = alerts.map(({ since, until, ...alert }) => ({
    ...alert,
    since: isoInstant(since),
    until: isoOrNull(until),
  }));
  return JSON.stringify({ ...message, at: isoInstant(at), alerts: told });
}
