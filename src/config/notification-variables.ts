import { z } from 'zod';
import { parseMailDomains } from '../core/alerts/texts/mail.ts';
import { isMailFrom, parseSmtpUrl } from './smtp-url.ts';
import { list, parsed } from './variable-kinds.ts';

/** What messages of notifiers need. */
export const NOTIFICATION_VARIABLES = {
  FIRELOCK_SMTP_URL: parsed(
    'smtp://[user:password@]host[:port], or smtps:// for TLS from the first byte on, of a server that takes mail of notifiers, ' +
      'with ?requireTLS= and ?tls.rejectUnauthorized= true or false (default none)',
    (text) => {
      const read = parseSmtpUrl(text);
      return 'server' in read ? read.server : read;
    },
  ),
  FIRELOCK_MAIL_FROM: {
    hint: 'an address such as cron@example.com, or "firelock <cron@example.com>": whom mail is from (default none)',
    schema: z.string().max(320).refine(isMailFrom).optional(),
  },
  FIRELOCK_MAIL_TO_DOMAINS: list(
    'domains such as example.com, or .example.com for all below it, separated by commas (default: any)',
    parseMailDomains,
    [],
  ),
  FIRELOCK_PUBLIC_URL: parsed(
    'http(s)://host[:port][/path] under which people reach the dashboard, base path included: messages of notifiers link to it ' +
      '(default none: they have no links)',
    (text) => {
      const url = text.length > 2_000 ? null : URL.parse(text);
      const isPlain =
        url !== null && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === '';
      return isPlain ? url.href.replace(/\/$/, '') : null;
    },
  ),
};
