import { expect } from 'vitest';
import * as client from '../../clients/typescript/src/index.ts';
import * as fileStore from '../../clients/typescript/src/receiver/file-store.ts';
import * as receiver from '../../clients/typescript/src/receiver/index.ts';
import * as worker from '../../clients/typescript/src/worker/index.ts';
import { targetInput } from '../../src/api/targets/schemas.ts';
import { secretOf } from '../support/signed.ts';

const PACKAGE: Readonly<Record<string, object>> = {
  'firelock-client': client,
  'firelock-client/receiver': receiver,
  'firelock-client/file-store': fileStore,
  'firelock-client/worker': worker,
};

/** The API takes it as a target, once a secret stands where the page has dots. */
export function isTarget(text: string): void {
  expect(text).toContain('"whsec_…"');
  const target: unknown = JSON.parse(text.replace('whsec_…', secretOf(1)));
  expect(targetInput.safeParse(target).error?.issues).toBeUndefined();
}

/** What it imports of the client is there, and so are the calls that it makes of `firelock`. */
export function usesTheClient(text: string): void {
  const imports = [...text.matchAll(/^import \{ (.+) \} from '(firelock-client.*)';$/gm)];
  expect(imports.length).toBeGreaterThan(0);
  for (const [, names = '', module = ''] of imports)
    expect(Object.keys(PACKAGE[module] ?? {})).toEqual(expect.arrayContaining(names.split(', ')));
  const methods = Object.keys(client.createClient({ url: 'http://127.0.0.1' }));
  for (const [, method = ''] of text.matchAll(/\bfirelock\.(\w+)/g)) expect(methods).toContain(method);
}
