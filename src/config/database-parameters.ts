/** A parameter of the URL of a database, and what is to be said of it. */
export interface ParameterFault {
  parameter: string;
  message: string;
}

/**
 * Parameters about TLS and logging in that firelock does not support. They are refused, so that no user believes they have an effect.
 */
const NOT_SUPPORTED = [
  ...['requiressl', 'sslpassword', 'sslcrl', 'sslcrldir', 'sslsni', 'sslcompression', 'sslcertmode'],
  ...['sslnegotiation', 'ssl_min_protocol_version', 'ssl_max_protocol_version', 'require_auth'],
];

/** What other clients call by another name. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  schema: 'is not a parameter of PostgreSQL: write search_path',
  connection_limit: 'is not a parameter of PostgreSQL: set FIRELOCK_DATABASE_POOL',
};

const OWN_LIMITS = 'firelock has time limits of its own';

/** Hosts of PostgreSQL write these into the strings that they offer to copy; firelock does as well without. */
const IGNORED: readonly [names: RegExp, why: string][] = [
  [/^channel_binding$/, 'firelock logs in without it: sslmode=verify-full proves that the server is the right one'],
  [/^gssencmode$/, 'firelock does not use GSSAPI'],
  [/^keepalives(_idle|_interval|_count)?$/, 'firelock notices by itself that a connection is dead'],
  [/^(tcp_user_timeout|connect_timeout|pool_timeout)$/, OWN_LIMITS],
  [/^(pgbouncer|statement_cache_size)$/, 'firelock notices a pooler by itself'],
  [/^load_balance_hosts$/, 'firelock uses the server that accepts writes'],
  [/^client_encoding$/, 'firelock speaks UTF-8'],
  [/^uselibpqcompat$/, 'parameters mean what they mean for libpq'],
];

/** Takes out what firelock does not follow: what it refuses, and what it can do without. */
export function takeForeign(parameters: URLSearchParams): {
  faults: ParameterFault[];
  ignored: ParameterFault[];
} {
  const faults: ParameterFault[] = NOT_SUPPORTED.filter((name) => parameters.has(name)).map((parameter) => ({
    ...{ parameter, message: 'is not supported; sslmode, sslrootcert, sslcert and sslkey are' },
  }));
  if (parameters.get('gssencmode') === 'require')
    faults.push({ parameter: 'gssencmode', message: 'must not be require: firelock does not use GSSAPI' });
  const ignored: ParameterFault[] = [];
  for (const parameter of new Set(parameters.keys())) {
    const elsewhere = ELSEWHERE[parameter];
    if (elsewhere !== undefined) faults.push({ parameter, message: elsewhere });
    const [, why] = IGNORED.find(([names]) => names.test(parameter)) ?? [];
    if (why === undefined) continue;
    ignored.push({ parameter, message: why });
    parameters.delete(parameter);
  }
  return { faults, ignored };
}
