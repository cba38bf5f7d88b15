import { expect, it, vi } from 'vitest';
import { failedWith } from '../../src/targets/smtp-session.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import { tokenClient } from './login/clients.ts';
import { attemptOf, httpTarget, never } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

const lacking = (code: string) => Object.assign(new Error(`connect ${code}`), { code });

const NOT_SENT = { kind: 'transient', senderStopped: true };

it.each(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])(
  'a run that this instance could not send for want of its own was not tried: %s',
  async (code) => {
    const resolve = vi.fn(() => Promise.reject(lacking(code)));
    const kind = httpTarget(1, { resolve });
    expect(await kind.deliver(targetAt('http://h.test/'), attemptOf(), never)).toMatchObject({
      ...{ ...NOT_SENT, shortage: code },
      error: { kind: 'network', message: expect.stringMatching(`^not sent: .*\\(${code}\\)$`) as string },
    });
    // Nor for want of the token that it needs, nor as a mail.
    const { auth, uid, version, edition, url } = tokenClient();
    const connection = { uid, version, edition, url, headers: {}, auth, tls: null } as Connection<string>;
    const attempt = attemptOf({ connection });
    expect(await kind.prepare?.(attempt, never)).toMatchObject({ ...NOT_SENT, shortage: code });
    expect(failedWith(lacking(code), false)).toMatchObject({ ...NOT_SENT, shortage: code });
    // What was begun may have arrived.
    expect(failedWith(lacking(code), true)).toMatchObject({ kind: 'unknown' });
  },
);

it('a target that cannot be reached is a failure of its own', async () => {
  const kind = httpTarget(1, { resolve: () => Promise.reject(lacking('ECONNREFUSED')) });
  const outcome = await kind.deliver(targetAt('http://h.test/'), attemptOf(), never);
  expect(outcome).toMatchObject({ kind: 'transient', senderStopped: false });
  expect(outcome).not.toHaveProperty('shortage');
});
