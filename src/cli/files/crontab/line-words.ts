import { NotCarriedOver } from './imported.ts';

/** What stands before a command where a file is of another kind than was said. @throws NotCarriedOver */
export function checkWords(source: string, user: string | null): void {
  const [first = ''] = source.split(/\s/, 1);
  if (user !== null && !ACCOUNT.test(user))
    throw new NotCarriedOver(`“${user}” is no name of an account: in this file lines do not name their user`);
  if (!FIELD.test(first)) {
    if (user === null && first === 'root')
      throw new NotCarriedOver(`its command begins with root: --system says that lines name their user`);
    return;
  }
  throw new NotCarriedOver(
    `its command begins with “${first}”: ` +
      (/^\d+$/.test(first)
        ? 'an anacrontab has a delay and a name there, which cron does not know'
        : 'cron has five fields, and this is a sixth'),
  );
}

const ACCOUNT = /^[a-z_][\w.-]{0,31}\$?$/i;
const FIELD = /^(?:\*|[\d*?]+(?:[-,/][\d*]+)*)$/;

/** Names of accounts that are no programs. */
const ACCOUNTS = new Set(
  'www-data apache nobody postgres mongodb rabbitmq jenkins ubuntu debian ec2-user centos vagrant deploy'.split(
    ' ',
  ),
);

/** An account’s name before the command of a line that names no user. */
export function accountNoted(source: string, user: string | null): string[] {
  const [first = '', second] = source.split(/\s+/, 2);
  if (user !== null || second === undefined || !ACCOUNTS.has(first)) return [];
  return [
    `its command begins with ${first}, which is the name of an account: --system, if lines name their user`,
  ];
}
