import { destinationOf } from '../../core/http/template.ts';
import type { HandoffTarget, HttpTarget, PagerDutyTarget } from '../../core/schedules/schedule.ts';
import { mailAddress, mayMailTo } from '../../core/alerts/mail-address.ts';
import { sealTarget } from '../../core/secrets/target-secrets.ts';
import type { NotifierContent } from '../../operations/notifier-changes.ts';
import type { StoredNotifier } from '../../store/notifiers/find-notifiers.ts';
import { pointer } from '../http/json/json-body.ts';
import { type Fault, invalid } from '../http/problem.ts';
import type { Resolving } from '../named/named-routes.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { NO_KEY, unmaskHttpTarget } from '../targets/inputs.ts';
import type { ChannelInput } from './channel-schemas.ts';
import type { NotifierInput } from './schemas.ts';

/**
 * A notifier as it was sent, in the form in which it is stored. Values that were sent masked are filled in from the stored notifier;
 * secret values are encrypted. `faults`: of values that cannot be. @throws Problem 400
 */
export function resolveNotifier(
  input: NotifierInput,
  { current, uid, deps: { secrets: ring, sendsMail, mailToDomains } }: Resolving<StoredNotifier>,
): { content: NotifierContent; faults: Fault[] } {
  const wrong: Fault[] = [];
  const before = current?.target ?? null;
  if (input.channel.type === 'email' && !sendsMail) wrong.push({ path: '/channel/type', message: NO_MAIL });
  const given = targetOf(input.channel, before, wrong);
  if (wrong.length > 0) throw invalid(wrong);
  const { target, unsealed } = sealTarget(given, { ring, uid, before });
  const inChannel = target.type === 'http' ? ['channel', 'target'] : ['channel'];
  const faults = unsealed.map(({ steps }) => ({ path: pointer([...inChannel, ...steps]), message: NO_KEY }));
  const elsewhere = target.type === 'email' ? faultsElsewhere(target.to, mailToDomains) : [];
  const { description, enabled, on, filter, remindSeconds, afterFailures, fallback } = input;
  const content = { description, enabled, on, filter, remindSeconds, afterFailures, fallback };
  return { content: { ...content, channel: input.channel.type, target }, faults: [...faults, ...elsewhere] };
}

function faultsElsewhere(to: readonly string[], domains: readonly string[]): Fault[] {
  return to.flatMap((one, index) =>
    mayMailTo(domains, one)
      ? []
      : [
          {
            path: `/channel/to/${index}`,
            message: 'is at a domain to which FIRELOCK_MAIL_TO_DOMAINS lets no mail go',
          },
        ],
  );
}

function targetOf(channel: ChannelInput, stored: HandoffTarget | null, faults: Fault[]): HandoffTarget {
  switch (channel.type) {
    case 'email':
      return { type: 'email', to: channel.to.map((one) => mailAddress(one) ?? one) };
    case 'pagerduty': {
      const known = stored?.type === 'pagerduty' ? stored : null;
      const target = unmasked(channel.target, known?.target ?? null, faults);
      return { type: 'pagerduty', target, routingKey: keptKey(channel.routingKey, target, known, faults) };
    }
    case 'webhook':
    case 'slack':
      return unmasked(channel.target, stored?.type === 'http' ? stored : null, faults);
  }
}

function unmasked(
  input: Parameters<typeof unmaskHttpTarget>[0],
  stored: HttpTarget | null,
  faults: Fault[],
): HttpTarget {
  const found: Fault[] = [];
  const target = unmaskHttpTarget(input, stored, found);
  faults.push(...found.map(({ path, message }) => ({ path: `/channel${path}`, message })));
  return target;
}

/** A routing key is kept only for where it goes already. */
function keptKey(
  given: string,
  target: HttpTarget,
  known: PagerDutyTarget | null,
  faults: Fault[],
): PagerDutyTarget['routingKey'] {
  if (given !== MASK) return given;
  const path = '/channel/routingKey';
  const destination = ({ connection, url }: HttpTarget) => destinationOf(connection, url);
  if (known === null) faults.push({ path, message: `is "${MASK}", but there is no stored value to keep` });
  else if (destination(known.target) !== destination(target))
    faults.push({ path, message: 'must be given again, since where it is sent to changes' });
  return known?.routingKey ?? given;
}

const NO_MAIL =
  'cannot be "email": firelock has no mail server; set FIRELOCK_SMTP_URL and FIRELOCK_MAIL_FROM';
