import { type KeyObject, X509Certificate, createPrivateKey } from 'node:crypto';

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
  if (text.includes('ENCRYPTED'))
    return 'is encrypted: decrypt it first (openssl pkey), firelock encrypts it';
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
