import { type KeyObject, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer } from 'node:https';
import { onTestFinished } from 'vitest';
import { listenOnLoopback } from './loopback.ts';

/** PEM texts. */
interface Certified {
  cert: string;
  key: string;
}

interface Authority {
  ca: string;
  /** For 127.0.0.1 and localhost: for a server, and for a client. */
  issue(name: string): Certified;
}

/** A certificate authority of its own, whose certificates were valid yesterday and are so for some days. */
export function createAuthority(name = 'test authority'): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const own = certificate({
    subject: name,
    issuer: name,
    publicKey: keys.publicKey,
    signedBy: keys.privateKey,
    isCa: true,
  });
  return {
    ca: own,
    issue: (subject) => {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const cert = certificate({ subject, issuer: name, publicKey, signedBy: keys.privateKey, isCa: false });
      return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
    },
  };
}

interface CertificateOptions {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signedBy: KeyObject;
  isCa: boolean;
}

/** X.509 (RFC 5280, 4.1), in DER. */
function certificate({ subject, issuer, publicKey, signedBy, isCa }: CertificateOptions): string {
  const day = 86_400_000;
  const toBeSigned = sequence(
    tagged(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    sequence(time(Date.now() - day), time(Date.now() + 30 * day)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(isCa ? extension(BASIC_CONSTRAINTS, sequence(TRUE)) : extension(ALT_NAMES, ALTERNATIVES))),
  );
  const signature = Buffer.concat([Buffer.of(0), sign('sha256', toBeSigned, signedBy)]);
  const whole = sequence(toBeSigned, ECDSA_WITH_SHA256, der(0x03, signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function der(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

function sequence(...parts: Uint8Array[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function tagged(tag: number, content: Uint8Array): Buffer {
  return der(tag, content);
}

function objectId(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function nameOf(commonName: string): Buffer {
  return sequence(der(0x31, sequence(objectId('550403'), der(0x0c, Buffer.from(commonName)))));
}

/** As 20261120090000Z. */
function time(at: number): Buffer {
  return der(0x18, Buffer.from(`${new Date(at).toISOString().replace(/\D/g, '').slice(0, 14)}Z`));
}

function extension(id: Buffer, content: Buffer): Buffer {
  return sequence(id, der(0x04, content));
}

const ECDSA_WITH_SHA256 = sequence(objectId('2a8648ce3d040302'));
const BASIC_CONSTRAINTS = objectId('551d13');
const ALT_NAMES = objectId('551d11');
const TRUE = der(0x01, Buffer.of(0xff));
const ALTERNATIVES = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.of(127, 0, 0, 1)));

/** A server that answers who shows a certificate of this authority; `seen` has the name of each, a connection at a time. */
export async function askingForCertificates(
  authority: ReturnType<typeof createAuthority>,
): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer(
    { ...authority.issue('server'), ca: authority.ca, requestCert: true, rejectUnauthorized: true },
    (_, response) => response.end('{}'),
  );
  server.on('secureConnection', (socket) => seen.push(String(socket.getPeerCertificate().subject.CN)));
  const port = await listenOnLoopback(server);
  onTestFinished(() => void server.close());
  return { url: `https://127.0.0.1:${port}`, seen };
}
