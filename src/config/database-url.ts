import { type DatabaseTls, type ParameterFault, takeTls } from './database-tls.ts';

/** Where a server is: a name or address, or the folder of a unix socket. */
export interface Host {
  readonly name: string;
  readonly port: number;
}

export interface DatabaseUrl {
  /** At least one, in the order of the URL. */
  readonly hosts: readonly Host[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** `/database?parameters`, as in the URL, without the parameters that this module reads. */
  readonly rest: string;
  /** A server that does not accept writes is refused; otherwise it is the last choice. */
  readonly mustWrite: boolean;
  readonly tls: DatabaseTls;
}

/**
 * Reads `postgres://user:password@host:port,host:port/database?parameters` as libpq does (PostgreSQL documentation,
 * "Connection URIs"). The standard URL parser cannot read it: several hosts, IPv6 addresses in brackets, the folder of
 * a unix socket percent-encoded or as `?host=`. Null: it is no such URL, or asks for servers that firelock cannot use.
 */
export function parseDatabaseUrl(text: string, env: NodeJS.ProcessEnv = process.env): DatabaseUrl | null {
  const read = readDatabaseUrl(text, env);
  return 'faults' in read ? null : read;
}

/** As parseDatabaseUrl, or the parameters with faults; without any: it is no such URL at all. */
export function readDatabaseUrl(
  text: string,
  env: NodeJS.ProcessEnv = process.env,
): DatabaseUrl | { faults: ParameterFault[] } {
  const none = { faults: [] };
  const whole = WHOLE.exec(text);
  if (!whole) return none;
  const [, authority = '', path = '', query = ''] = whole;
  const parameters = new URLSearchParams(query);
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) ?? undefined;
    parameters.delete(name);
    return value;
  };
  const at = authority.lastIndexOf('@');
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(authority.slice(0, Math.max(at, 0))) ?? [];
  const port = take('port') ?? env['PGPORT'] ?? '5432';
  const given = [authority.slice(at + 1), take('host'), env['PGHOST']].find(
    (names) => names !== undefined && names !== '',
  );
  const names = given ?? 'localhost';
  const attributes = take('target_session_attrs') ?? 'any';
  const { tls, faults } = takeTls(parameters, env);
  try {
    const hosts = names.split(',').map((name) => parseHost(name, port));
    if (!hosts.every((host) => host !== null) || !['any', ...WRITING].includes(attributes)) return none;
    if (faults.length > 0) return { faults };
    const search = parameters.size > 0 ? `?${parameters.toString()}` : '';
    return {
      hosts,
      user: user === '' ? undefined : decodeURIComponent(user),
      password: password === '' ? undefined : decodeURIComponent(password),
      rest: `${path}${search}`,
      mustWrite: WRITING.includes(attributes),
      tls,
    };
  } catch {
    return none;
  }
}

export function hostText({ name, port }: Host): string {
  return `${name.includes(':') ? `[${name}]` : name}:${port}`;
}

const WHOLE = /^postgres(?:ql)?:\/\/([^/?#\s]*)(\/[^?#\s]*)?(?:\?([^#\s]*))?(?:#.*)?$/;
/** Both values find the server that firelock needs: one that is no standby and not set to be read only. */
const WRITING = ['read-write', 'primary'];

function parseHost(text: string, standardPort: string): Host | null {
  const match = /^(?:\[([\da-f:.]+(?:%[\w.]+)?)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(text);
  const port = Number(match?.[3] ?? standardPort);
  if (!match || !Number.isInteger(port) || port < 1 || port > 65_535) return null;
  return { name: match[1] ?? decodeURIComponent(match[2] ?? ''), port };
}
