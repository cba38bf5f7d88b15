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
  return parts.every((part) => PART.test(part))
    ? null
    : 'is not made of A-Z, a-z, 0-9, ., _, - and single slashes';
}

const MOST_CHARACTERS = 255;
const PART = /^[A-Za-z0-9._-]+$/;
