import type { Connection, SecretFile } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { NO_SECRETS, type SecretDraft, secretDraftOf, secretsOf, twice } from '../../parts/forms/pair.ts';

/** A secret value or a certificate, or the name of a file that has it. */
export interface Typed {
  text: string;
  isFile: boolean;
}

type Auth = NonNullable<Connection['auth']>;

/** What is typed so far. The fields of each way to log in stay while another one is chosen. */
export interface ConnectionDraft {
  url: string;
  headers: SecretDraft;
  authType: '' | Auth['type'];
  token: Typed;
  username: string;
  password: Typed;
  tokenUrl: string;
  clientId: string;
  clientSecret: Typed;
  scope: string;
  audience: string;
  ca: Typed;
  cert: Typed;
  key: Typed;
}

const NOTHING: Typed = { text: '', isFile: false };

export const EMPTY: ConnectionDraft = {
  ...{ url: '', headers: NO_SECRETS, authType: '', token: NOTHING, username: '', password: NOTHING },
  ...{ tokenUrl: '', clientId: '', clientSecret: NOTHING, scope: '', audience: '' },
  ...{ ca: NOTHING, cert: NOTHING, key: NOTHING },
};

/** Secret values are answered as ***, which sent back keeps them. */
export function draftOf({ url, headers, auth, tls }: Connection): ConnectionDraft {
  return {
    ...EMPTY,
    url,
    headers: secretDraftOf(headers),
    ...(auth && authDraftOf(auth)),
    ...{ ca: typedOf(tls?.ca ?? ''), cert: typedOf(tls?.cert ?? ''), key: typedOf(tls?.key ?? '') },
  };
}

function authDraftOf(auth: Auth): Partial<ConnectionDraft> {
  switch (auth.type) {
    case 'bearer':
      return { authType: auth.type, token: typedOf(auth.token) };
    case 'basic':
      return { authType: auth.type, username: auth.username, password: typedOf(auth.password) };
    case 'oauth2':
      return {
        authType: auth.type,
        tokenUrl: auth.tokenUrl,
        clientId: auth.clientId,
        clientSecret: typedOf(auth.clientSecret),
        scope: auth.scope ?? '',
        audience: auth.audience ?? '',
      };
  }
}

function typedOf(value: string | SecretFile): Typed {
  return typeof value === 'string' ? { text: value, isFile: false } : { text: value.file, isFile: true };
}

/** What to send, but for the description. */
export function bodyOf(draft: ConnectionDraft): Record<string, unknown> {
  return { url: draft.url, headers: secretsOf(draft.headers), auth: authOf(draft), tls: tlsOf(draft) };
}

function authOf(draft: ConnectionDraft): unknown {
  const { authType: type, username, tokenUrl, clientId } = draft;
  switch (type) {
    case '':
      return null;
    case 'bearer':
      return { type, token: valueOf(draft.token) };
    case 'basic':
      return { type, username, password: valueOf(draft.password) };
    case 'oauth2': {
      const clientSecret = valueOf(draft.clientSecret);
      const [scope, audience] = [draft.scope || null, draft.audience || null];
      return { type, tokenUrl, clientId, clientSecret, scope, audience };
    }
  }
}

function tlsOf({ ca, cert, key }: ConnectionDraft): unknown {
  if ([ca, cert, key].every(({ text }) => text === '')) return null;
  const orNull = (typed: Typed) => (typed.text === '' ? null : valueOf(typed));
  return { ca: orNull(ca), cert: orNull(cert), key: orNull(key) };
}

function valueOf({ text, isFile }: Typed): string | SecretFile {
  return isFile ? { file: text } : text;
}

/** What cannot be sent at all, and so the daemon cannot say. */
export function faultsOf({ headers: { values, files } }: ConnectionDraft): ReturnType<typeof twice> {
  return twice([...values, ...files], '/headers');
}
