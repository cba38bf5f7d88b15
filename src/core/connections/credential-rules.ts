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
