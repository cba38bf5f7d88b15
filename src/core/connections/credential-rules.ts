import { type KeyObject, createPrivateKey, X509Certificate } from 'node:crypto';
import { headerFault } from '../http/header-rules.ts';

/** Why a text cannot be sent from this place of a connection; null: it can. Certificates and keys are for TLS to judge. */
export function credentialFault([part, name]: readonly string[], text: string): string | null {
  if (part === 'headers') return valueFault(text);
  if (name === 'token') return emptyFault(text) ?? valueFault(text);
  if (name === 'clientSecret') return emptyFault(text);
  return name === 'password' ? controlFault(text) : null;
}

/** RFC 7617, 2: the first colon ends the name. */
export function usernameFault(text: string): string | null {
  return text.includes(':') ? 'must not have a colon: it ends a name' : controlFault(text);
}

function valueFault(text: string): string | null {
  return headerFault('authorization', text);
}

function controlFault(text: string): string | null {
  return /\p{Cc}/u.test(text) ? 'has control characters' : null;
}

function emptyFault(text: string): string | null {
  return text === '' ? 'is empty' : null;
}

/** Why this cannot be the name of a secret file, or null. A slash leads into a folder of FIRELOCK_SECRETS_DIR. */
export function secretNameFault(name: string): string | null {
  if (name.length > MOST_CHARACTERS) return `is longer than ${MOST_CHARACTERS} characters`;
  const parts = name.split('/');
  if (parts.some((part) => part === '.' || part === '..')) return 'contains . or .. as a part';
  return parts.every((part) => PART.test(part)) ? null : 'is not made of A-Z, a-z, 0-9, ., _, - and single slashes';
}

const MOST_CHARACTERS = 255;
const PART = /^[A-Za-z0-9._-]+$/;

/** Why these are not certificates in PEM, one or several; null: they are. They are answered as they are, so no key may be among them. */
export function certificatesFault(text: string): string | null {
  if (text.includes('PRIVATE KEY')) return 'has a private key, which answers would show: send it as key';
  const blocks = blocksOf(text);
  if (blocks === null) return 'has a block of PEM that does not end';
  if (blocks.length === 0) return 'has no certificate in PEM';
  const broken = blocks.findIndex((block) => certificateOf(block) === null);
  return broken === -1 ? null : `has a block of PEM that is no certificate: number ${broken + 1}`;
}

/** The message says nothing about the content. */
export function privateKeyFault(text: string): string | null {
  if (text.includes('ENCRYPTED')) return 'is encrypted: decrypt it first (openssl pkey), firelock encrypts it';
  return keyOf(text) === null ? 'is no private key in PEM' : null;
}

/** Whether the key belongs to the first certificate; texts that are none are no fault here. */
export function keyOfAnotherFault(cert: string, key: string): string | null {
  const [own] = blocksOf(cert) ?? [];
  const [certificate, privateKey] = [own === undefined ? null : certificateOf(own), keyOf(key)];
  if (certificate === null || privateKey === null || certificate.checkPrivateKey(privateKey)) return null;
  return 'does not belong to the first certificate of cert';
}

/** Null: one does not end. */
function blocksOf(text: string): string[] | null {
  const blocks: string[] = [];
  for (let done = 0; ;) {
    const begin = text.indexOf('-----BEGIN ', done);
    if (begin === -1) return blocks;
    const end = text.indexOf(END, begin);
    const close = end === -1 ? -1 : text.indexOf('-----', end + END.length);
    if (close === -1) return null;
    done = close + '-----'.length;
    blocks.push(text.slice(begin, done));
  }
}

const END = '-----END ';

function certificateOf(block: string): X509Certificate | null {
  if (!block.startsWith('-----BEGIN CERTIFICATE-----')) return null;
  try {
    return new X509Certificate(block);
  } catch {
    return null;
  }
}

function keyOf(text: string): KeyObject | null {
  try {
    return createPrivateKey(text);
  } catch {
    return null;
  }
}
