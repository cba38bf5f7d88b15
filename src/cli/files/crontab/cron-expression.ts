import { NotCarriedOver } from './imported.ts';

const NICKNAMES = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];

/**
 * When a line of a crontab runs, as a cron expression of firelock. In both, if both day fields are restricted, a day
 * matches when either field does. But cron treats a field that begins with * as unrestricted: then a day must match
 * both, which is firelock's `+`. @throws NotCarriedOver
 */
export function cronOf(fields: readonly string[]): string {
  const [first = ''] = fields;
  if (first.startsWith('@')) {
    const nickname = first.toLowerCase();
    if (NICKNAMES.includes(nickname)) return nickname;
    throw new NotCarriedOver(
      nickname === '@reboot'
        ? '@reboot: there is no boot to wait for; fire it by hand, or from where the machine boots'
        : `${first} is not known to firelock`,
    );
  }
  for (const [index, field] of fields.entries()) checkField(field, NAMES[index] ?? '');
  const [minute = '', hour = '', dayOfMonth = '', month = '', dayOfWeek = ''] = fields;
  const isEither = !dayOfMonth.startsWith('*') && !dayOfWeek.startsWith('*');
  const both = !isEither && !isAll(dayOfMonth) && !isAll(dayOfWeek) ? '+' : '';
  return [minute, hour, dayOfMonth, month, both + dayOfWeek].join(' ');
}

const NAMES = ['minute', 'hour', 'day of month', 'month', 'day of week'];
const ITEM = /^(?:\*|\d{1,2}|[a-z]{3})(?:-(?:\d{1,2}|[a-z]{3}))?(?:\/\d{1,2})?$/i;

/** What cron accepts: firelock gives other signs a meaning of its own. */
function checkField(field: string, name: string): void {
  const items = field.split(',');
  const odd = items.find((item) => !ITEM.test(item));
  if (odd !== undefined)
    throw new NotCarriedOver(`${name}: “${odd}” is not what every cron understands alike`);
  if (items.length > 1 && items.some((item) => item.startsWith('*')))
    throw new NotCarriedOver(`${name}: a list with * in it means something else to each cron`);
}

function isAll(field: string): boolean {
  return field === '*' || field === '*/1';
}
