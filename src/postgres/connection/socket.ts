import { Socket, isIP } from 'node:net';
import { type DatabaseTls, type Host, hostText, tlsFiles } from '../../config/database-url.ts';
import { type Resolve, lookupBy, untilClosed } from '../../runtime/names/resolve.ts';
import { createResolver } from '../../runtime/names/resolver.ts';
import { readFile } from 'node:fs/promises';
import { type ConnectionOptions, type TLSSocket, checkServerIdentity, connect } from 'node:tls';
import { TlsFailed } from '../errors.ts';

/** Begins to connect. An error ends the socket; callers that listen hear of it. */
function connectTo({ name, port }: Host, resolve: Resolve): Socket {
  const socket = new Socket();
  socket.on('error', () => undefined);
  if (name.startsWith('/')) socket.connect(`${name}/.s.PGSQL.${port}`);
  else socket.connect({ host: name, port, lookup: lookupBy(resolve, untilClosed(socket)) });
  // The driver names it in its messages.
  return Object.assign(socket, { host: name, port });
}

function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () => reject(Object.assign(new Error('connection closed'), { code: 'CONNECTION_CLOSED' })));
  });
}

/** A socket that is connected, and protected as the URL says. `begun` gets the socket at once, to be able to end it. */
export async function openSocket(
  host: Host,
  tls: DatabaseTls,
  begun: (socket: Socket) => void,
  resolve = resolveDatabaseName,
): Promise<Socket> {
  const socket = connectTo(host, resolve);
  begun(socket);
  await connected(socket);
  if (!usesTls(host, tls)) return socket;
  try {
    return await secured(socket, host, tls);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * For the names of database servers only: they wait for no look-up of a target, however many there are. A failure is soon
 * asked anew, for firelock stands still without its database.
 */
export const resolveDatabaseName = createResolver({ failureSeconds: 1 });

/** Whether connections to this host can use TLS. Those to a unix socket cannot, as in libpq. */
function usesTls(host: Host, { mode }: DatabaseTls): boolean {
  return mode !== 'disable' && !host.name.startsWith('/');
}

/**
 * Asks the server on this new connection for TLS, and checks its certificate as `sslmode` says. The driver does not do:
 * for an address it would compare the certificate with another name. @throws TlsFailed
 */
async function secured(socket: Socket, host: Host, tls: DatabaseTls): Promise<Socket> {
  const offers = await offersTls(socket, host);
  if (!offers && tls.mode === 'prefer') return socket;
  if (!offers) throw new TlsFailed(`${hostText(host)} does not offer TLS, which sslmode=${tls.mode} asks for`);
  const options = await optionsOf(host, tls);
  const secure = connect({ ...options, socket });
  secure.on('error', () => undefined);
  await established(secure, host, tls);
  return Object.assign(secure, { host: host.name, port: host.port });
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/**
 * The answer is one byte. An attacker may send more bytes with it, to have them read as if they came under TLS
 * (CVE-2021-23222).
 */
function offersTls(socket: Socket, host: Host): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const lost = () => reject(new TlsFailed(`${hostText(host)} closed the connection when it was asked for TLS`));
    socket.once('close', lost);
    socket.once('data', (answer) => {
      socket.off('close', lost);
      if (answer.length === 1 && (answer[0] === 0x53 || answer[0] === 0x4e)) resolve(answer[0] === 0x53);
      else reject(new TlsFailed(`${hostText(host)} does not answer a question for TLS as PostgreSQL does`));
    });
    socket.write(SSL_REQUEST);
  });
}

async function optionsOf(host: Host, tls: DatabaseTls): Promise<ConnectionOptions> {
  const read = new Map<string, Buffer>();
  for (const { parameter, file } of tlsFiles(tls)) {
    const content = await readFile(file).catch((error: unknown) => {
      const { code = '' } = error as NodeJS.ErrnoException;
      throw new TlsFailed(`the file of ${parameter}, ${file}, cannot be read (${code})`);
    });
    read.set(parameter, content);
  }
  const [ca, cert, key] = ['sslrootcert', 'sslcert', 'sslkey'].map((parameter) => read.get(parameter));
  return {
    ...(isIP(host.name) === 0 ? { servername: host.name } : {}),
    ...{ ca, cert, key },
    ALPNProtocols: ['postgresql'],
    rejectUnauthorized: tls.mode.startsWith('verify'),
    // If the host is an address, Node would compare with a name of its own choice.
    checkServerIdentity: (_name, certificate) =>
      tls.mode === 'verify-full' ? checkServerIdentity(host.name, certificate) : undefined,
  };
}

function established(secure: TLSSocket, host: Host, { mode }: DatabaseTls): Promise<void> {
  const refuse = (why: string) => new TlsFailed(`${hostText(host)}, asked by sslmode=${mode}: ${why}`);
  return new Promise((resolve, reject) => {
    secure.once('secureConnect', () => resolve());
    secure.once('error', (error: NodeJS.ErrnoException) => {
      secure.destroy();
      reject(refuse(REASONS[error.code ?? ''] ?? error.message));
    });
    secure.once('close', () => reject(refuse('the connection was closed while TLS was agreed on')));
  });
}

const UNKNOWN_SIGNER = 'its certificate is not signed by one that is trusted (sslrootcert)';
const REASONS: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_SIGNER,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_SIGNER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_SIGNER,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_SIGNER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_SIGNER,
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
};
