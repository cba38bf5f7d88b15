import { z } from 'zod';
import { credentialFault } from '../../core/connections/credential-rules.ts';
import { certificatesFault, privateKeyFault } from '../../core/connections/pem.ts';
import { withoutFault } from '../http/common-schemas.ts';
import { MASK, MAX_HEADER_VALUE_LENGTH } from '../targets/http-call-schemas.ts';
import { orFile } from '../targets/secret-file-schemas.ts';

const MAX_PEM_LENGTH = 65_536;

const KEPT = `Answered as "${MASK}", which sent back keeps the stored value where the origins that it is bound to are unchanged.`;

function secretText(name: string, maxLength: number, faultOf: (value: string) => string | null) {
  const text = z
    .string()
    .max(maxLength)
    .superRefine(withoutFault((value) => (value === MASK ? null : faultOf(value))));
  return orFile(text, `Write-only: ${name}. ${KEPT}`);
}

const atPlace = (...steps: string[]) => {
  return (value: string) => credentialFault(steps, value);
};

export const headerValue = orFile(
  z.string().max(MAX_HEADER_VALUE_LENGTH).meta({ format: 'http-header-value' }),
  'Write-only.',
);
export const token = secretText('a token', MAX_HEADER_VALUE_LENGTH, atPlace('auth', 'token'));
export const password = secretText('a password', 4096, atPlace('auth', 'password'));
export const clientSecret = secretText('the secret of the client', 8192, atPlace('auth', 'clientSecret'));
export const privateKey = secretText('a private key in PEM, not encrypted', MAX_PEM_LENGTH, privateKeyFault);
export const certificates = orFile(
  z.string().max(MAX_PEM_LENGTH).superRefine(withoutFault(certificatesFault)),
  'Certificates in PEM. They are no secret, and answered as they are.',
);
