import { type ParameterFault, takeForeign } from './database-parameters.ts';
import { percentDecoded } from '../core/connections/join-url.ts';

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
  /** Undefined: that of the environment, or the user's name. */
  readonly database: string | undefined;
  /** `?parameters` for the server, or nothing: without those that this module reads. */
  readonly search: string;
  /** Parameters that have no effect, and why. */
  readonly ignored: readonly ParameterFault[];
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
  const attributes = take('target_session_attrs') ?? 'any';
  const { tls, faults } = takeTls(parameters, env);
  const foreign = takeForeign(parameters);
  const named = decoded({ user, password, database: path.slice(1) });
  faults.push(...foreign.faults, ...named.faults);
  if (!['any', ...WRITING].includes(attributes))
    faults.push({
      parameter: 'target_session_attrs',
      message: 'must be any, read-write or primary: firelock writes',
    });
  const hosts = hostsIn(given ?? 'localhost', port);
  if (hosts === null) return none;
  if (faults.length > 0) return { faults };
  const search = parameters.size > 0 ? `?${parameters.toString()}` : '';
  const mustWrite = WRITING.includes(attributes);
  return { hosts, ...named.parts, search, ignored: foreign.ignored, mustWrite, tls };
}

type Parts = Record<'user' | 'password' | 'database', string | undefined>;

/** Empty parts are undefined. */
function decoded(encoded: Record<keyof Parts, string>): { parts: Parts; faults: ParameterFault[] } {
  const parts: Parts = { user: undefined, password: undefined, database: undefined };
  const faults: ParameterFault[] = [];
  for (const part of ['user', 'password', 'database'] as const) {
    if (encoded[part] === '') continue;
    const read = percentDecoded(encoded[part]);
    if (read !== null) parts[part] = read;
    else faults.push({ parameter: part, message: 'has a % that begins no encoded character: write it as %25' });
  }
  return { parts, faults };
}

function hostsIn(names: string, port: string): Host[] | null {
  const hosts = names.split(',').flatMap((name) => parseHost(name, port) ?? []);
  return hosts.length === names.split(',').length ? hosts : null;
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
  const name = match[1] ?? percentDecoded(match[2] ?? '');
  return name === null ? null : { name, port };
}

const MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

type Mode = (typeof MODES)[number];

/** How the connection to a database is protected (PostgreSQL documentation, "SSL Support" of libpq). */
export interface DatabaseTls {
  /** `prefer`: if the server offers it; `require`: always, and the server's identity is not checked. */
  readonly mode: Mode;
  /** A file of certificates, one of which must have signed the server's certificate; null: those that Node trusts. */
  readonly rootCertificate: string | null;
  /** The client's own certificate and key, for servers that ask for them. */
  readonly own: { certificate: string; key: string } | null;
}

/**
 * Takes the parameters about TLS out of a URL, with their meaning in libpq. But it reads only files that are named, and
 * without `sslmode` it does not ask for TLS. With `sslrootcert`, `require` checks the certificate, as in libpq.
 */
function takeTls(parameters: URLSearchParams, env: NodeJS.ProcessEnv): { tls: DatabaseTls; faults: ParameterFault[] } {
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) ?? env[`PG${name.toUpperCase()}`];
    parameters.delete(name);
    return value === '' ? undefined : value;
  };
  const { mode: short, faults } = takeShort(parameters);
  const [given = short, root] = [take('sslmode'), take('sslrootcert')];
  const [certificate, key] = [take('sslcert'), take('sslkey')];
  if (short === 'require' && given === 'disable')
    faults.push({ parameter: 'ssl', message: 'asks for TLS, and sslmode=disable for none' });
  const asked = given ?? (root === 'system' ? 'verify-full' : 'disable');
  const mode = MODES.find((known) => known === asked);
  if (mode === undefined) faults.push({ parameter: 'sslmode', message: `must be one of ${MODES.join(', ')}` });
  faults.push(...rootFaults(mode, root));
  if ((certificate === undefined) !== (key === undefined))
    faults.push({
      parameter: certificate === undefined ? 'sslcert' : 'sslkey',
      message: 'must be given too',
    });
  const tls = {
    mode: mode === 'require' && root !== undefined ? 'verify-ca' : (mode ?? 'disable'),
    rootCertificate: root === undefined || root === 'system' ? null : root,
    own: certificate === undefined || key === undefined ? null : { certificate, key },
  };
  return { tls, faults };
}

/** `ssl=true`, as other clients write it. */
function takeShort(parameters: URLSearchParams): { mode: Mode | undefined; faults: ParameterFault[] } {
  const asked = parameters.get('ssl');
  parameters.delete('ssl');
  if (asked === null) return { mode: undefined, faults: [] };
  const mode = SHORT[asked.toLowerCase()];
  const message = 'must be true or false; sslmode says more';
  return { mode, faults: mode === undefined ? [{ parameter: 'ssl', message }] : [] };
}

const SHORT: Readonly<Record<string, Mode>> = {
  ...{ true: 'require', 1: 'require', require: 'require' },
  ...{ false: 'disable', 0: 'disable', disable: 'disable' },
};

function rootFaults(mode: Mode | undefined, root: string | undefined): ParameterFault[] {
  const fault = (message: string) => [{ parameter: 'sslrootcert', message }];
  if (mode === 'verify-ca' && root === undefined)
    return fault('must name a file of certificates: sslmode=verify-ca trusts any server that has one of these');
  if (root === 'system' && mode !== 'verify-full') return fault('goes, as system, with sslmode=verify-full only');
  if (root !== undefined && (mode === 'disable' || mode === 'prefer'))
    return fault('does nothing without sslmode=verify-full, verify-ca or require');
  return [];
}

/** The files that the settings name, each with its parameter. */
export function tlsFiles({ rootCertificate, own }: DatabaseTls): { parameter: string; file: string }[] {
  return [
    ...(rootCertificate === null ? [] : [{ parameter: 'sslrootcert', file: rootCertificate }]),
    ...(own === null
      ? []
      : [
          { parameter: 'sslcert', file: own.certificate },
          { parameter: 'sslkey', file: own.key },
        ]),
  ];
}
