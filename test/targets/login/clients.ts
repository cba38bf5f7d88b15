import type { OAuthClient } from '../../../src/core/connections/connection.ts';
import type { TokenClient } from '../../../src/targets/login/oauth-tokens.ts';

export function tokenClient({
  auth,
  ...rest
}: Partial<Omit<TokenClient, 'auth'>> & { auth?: Partial<OAuthClient<string>> } = {}): TokenClient {
  return {
    uid: 'u-1',
    version: 1,
    edition: null,
    url: 'https://api.example',
    tls: null,
    auth: {
      type: 'oauth2',
      tokenUrl: 'https://login.example/token',
      clientId: 'firelock',
      clientSecret: 'a-secret',
      scope: null,
      audience: null,
      ...auth,
    },
    ...rest,
  };
}
