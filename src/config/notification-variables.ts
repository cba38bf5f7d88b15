import { z } from 'zod';
import { parseMailDomains } from '../core/alerts/mail-address.ts';
import { isMailFrom, parseSmtpUrl } from './smtp-url.ts';

/** What messages of notifiers need. */
export const NOTIFICATION_VARIABLES = {
  FIRELOCK_SMTP_URL: {
    hint:
      'smtp://[user:password@]host[:port], or smtps:// for TLS from the first byte on, of a server that takes mail of notifiers, ' +
      'with ?requireTLS= and ?tls.rejectUnauthorized= true or false (default none)',
    schema: z
      .string()
      .transform((text, context) => {
        const read = parseSmtpUrl(text);
        if ('server' in read) return read.server;
        context.addIssue({ code: 'custom', message: read.fault, path: ['it'] });
        return undefined;
      })
      .optional(),
  },
  FIRELOCK_MAIL_FROM: {
    hint: 'an address such as cron@example.com, or "firelock <cron@example.com>": whom mail is from (default none)',
    schema: z.string().max(320).refine(isMailFrom).optional(),
  },
  FIRELOCK_MAIL_TO_DOMAINS: {
    hint: 'domains such as example.com, or .example.com for all below it, separated by commas (default: any)',
    schema: z
      .string()
      .default('')
      .transform((text, context) => {
        if (text === '') return [];
        const [domains, faults] = parseMailDomains(text);
        for (const { entry, message } of faults) context.addIssue({ code: 'custom', message, path: [entry] });
        return domains;
      }),
  },
  FIRELOCK_PUBLIC_URL: {
    hint:
      'http(s)://host[:port][/path] under which people reach the dashboard, base path included: messages of notifiers link to it ' +
      '(default none: they have no links)',
    schema: z
      .string()
      .max(2_000)
      .transform((text, context) => {
        const url = URL.parse(text);
        const isPlain =
          url !== null &&
          ['http:', 'https:'].includes(url.protocol) &&
          url.search + url.hash + url.username === '';
        if (isPlain) return url.href.replace(/\/$/, '');
        context.addIssue({ code: 'custom', message: 'no such URL' });
        return undefined;
      })
      .optional(),
  },
};
