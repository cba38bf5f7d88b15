import { NotCarriedOver } from './imported.ts';
import { isOpenHeader } from './curl-target.ts';

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
  'www-data apache nobody postgres mongodb rabbitmq jenkins ubuntu debian ec2-user centos vagrant deploy'.split(' '),
);

/** An account’s name before the command of a line that names no user. */
export function accountNoted(source: string, user: string | null): string[] {
  const [first = '', second] = source.split(/\s+/, 2);
  if (user !== null || second === undefined || !ACCOUNTS.has(first)) return [];
  return [`its command begins with ${first}, which is the name of an account: --system, if lines name their user`];
}

/** What may stand in the place of a value: quoted, or not. */
const VALUE = String.raw`("[^"]{0,4000}"|'[^']{0,4000}'|[^\s"']{1,4000})`;
const CALLS = /(?:^|[\s;&|(\x60/])(?:curl|wget)\s/;
const USER = new RegExp(String.raw`(\s(?:-[a-zA-Z]{0,9}[uU]\s{0,9}|--(?:proxy-)?user[\s=]{1,9}))${VALUE}`, 'g');
const PASSWORD = new RegExp(String.raw`(--(?:http-|ftp-|proxy-)?password[\s=]{1,9})${VALUE}`, 'g');
const HEADER = new RegExp(String.raw`(\s(?:-[a-zA-Z]{0,9}H\s{0,9}|--header[\s=]{1,9}))${VALUE}`, 'g');
const IN_URL = /(:\/\/[^\s/@:'"]{1,200}:)([^\s/@'"]{1,200})(?=@)/g;
const SECRET_NAME = /auth|cookie|key|passw|secret|token/i;

/** What is left of a line that calls curl or wget without passwords and headers that log in. Null: it has none. */
export function withoutPasswords(line: string, env: Readonly<Record<string, string>>): string | null {
  if (!CALLS.test(line)) return null;
  const hide = (isSecret: (value: string) => boolean) => (all: string, before: string, value: string) =>
    isSecret(unquoted(value)) && !comesFromElsewhere(value, env) ? `${before}…` : all;
  const shown = line
    .replace(
      USER,
      hide((value) => value.includes(':')),
    )
    .replace(
      PASSWORD,
      hide(() => true),
    )
    .replace(HEADER, hide(isSecretHeader))
    .replace(
      IN_URL,
      hide(() => true),
    );
  return shown === line ? null : shown;
}

function isSecretHeader(text: string): boolean {
  const name = text.slice(0, Math.max(0, text.indexOf(':'))).trim();
  return name !== '' && !isOpenHeader(name) && SECRET_NAME.test(name);
}

export function unquoted(value: string): string {
  return /^(["'])(.*)\1$/s.exec(value)?.[2] ?? value;
}

/** The shell puts it there, from a file or from a variable that the crontab does not set. */
function comesFromElsewhere(value: string, env: Readonly<Record<string, string>>): boolean {
  if (value.startsWith("'")) return false;
  const [, secret = unquoted(value)] = /^[^:]*:\s*(?:\w+\s+)?(.*)$/s.exec(unquoted(value)) ?? [];
  const [, name] = /^\$\{?(\w+)\}?$/.exec(secret) ?? [];
  return name === undefined ? /^(?:\$\(|`)/.test(secret) : env[name] === undefined;
}
