import { createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseSmtpUrl } from '../../src/config/smtp-url.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { type AddressGuard, AddressBlocked, createAddressGuard } from '../../src/targets/address-guard.ts';
import { createEmailTarget } from '../../src/targets/email.ts';
import { createAuthority } from '../support/certificates.ts';
import { ATTACK } from '../support/runner/attack.ts';
import { settableTimers } from '../support/clocks.ts';
import { startSmtp } from '../support/smtp-server.ts';
import { attemptOf, listen, never } from './receivers.ts';

const FROM = 'firelock <cron@example.com>';
const MAIL = JSON.stringify({ subject: '[firelock] billing failed', text: 'Grüße\n.\nEnd\n' });
const target = { type: 'email', to: ['ops@example.com', 'lead@example.com'] } as const;
const TO = { type: target.type, to: [...target.to] };
const certified = createAuthority().issue('localhost');

function kindAt(url: string, deps: { guard?: AddressGuard; mailToDomains?: string[] } = {}) {
  const read = parseSmtpUrl(url);
  if ('fault' in read) throw new Error(read.fault);
  const kind = createEmailTarget({ clock: systemClock, mail: { server: read.server, from: FROM }, ...deps });
  onTestFinished(() => kind.close());
  return kind;
}

const sent = (url: string, more: Parameters<typeof attemptOf>[0] = {}) =>
  kindAt(url).deliver(TO, attemptOf({ payload: MAIL, ...more }), never);

test('a mail arrives whole, to all, with the id of the run as its own', async () => {
  const smtp = await startSmtp();
  const attempt = attemptOf({ payload: MAIL });
  const outcome = await kindAt(`smtp://127.0.0.1:${smtp.port}`).deliver(TO, attempt, never);
  expect(outcome).toEqual({
    ...{ kind: 'accepted', statusCode: 250, body: '250 2.0.0 queued as 4711', executionId: null },
  });
  const [mail] = smtp.mails;
  expect(mail).toMatchObject({ ...{ user: null, isEncrypted: false, from: 'cron@example.com' }, to: TO.to });
  expect(mail?.text).toContain(`Message-ID: <${attempt.runId}@example.com>`);
  expect(mail?.text).toContain('Auto-Submitted: auto-generated');
  expect(mail?.text).toContain('Subject: [firelock] billing failed');
  expect(mail?.text).toContain('From: firelock <cron@example.com>');
  expect(mail?.text).toMatch(/Gr=C3=BC=C3=9Fe\n\.\.\nEnd/);
});

test('a stored address is not written to where no mail may go', async () => {
  const smtp = await startSmtp();
  const url = `smtp://127.0.0.1:${smtp.port}`;
  const to = { ...TO, to: ['ops@example.com', 'ops@elsewhere.example'] };
  const deliver = (mailToDomains: string[]) =>
    kindAt(url, { mailToDomains }).deliver(to, attemptOf({ payload: MAIL }), never);
  expect(await deliver(['.example'])).toMatchObject({ kind: 'accepted' });
  expect(await deliver(['other.example'])).toMatchObject({ kind: 'blocked' });
  expect(smtp.mails.map((mail) => mail.to)).toEqual([['ops@elsewhere.example']]);
});

describe('TLS', () => {
  test('is used where STARTTLS is offered, and from the first byte on with smtps', async () => {
    for (const [mode, scheme] of [
      ['startTls', 'smtp'],
      ['tls', 'smtps'],
    ] as const) {
      const smtp = await startSmtp({ mode, certified, password: 'pass word' });
      const url = `${scheme}://me:pass%20word@localhost:${smtp.port}?tls.rejectUnauthorized=false`;
      expect(await sent(url)).toMatchObject({ kind: 'accepted' });
      expect(smtp.mails).toMatchObject([{ user: 'me', isEncrypted: true }]);
    }
  });

  test('with a certificate that nobody vouches for sends nothing', { tags: [ATTACK] }, async () => {
    for (const [mode, scheme] of [
      ['startTls', 'smtp'],
      ['tls', 'smtps'],
    ] as const) {
      const smtp = await startSmtp({ mode, certified, password: 'secret' });
      const outcome = await sent(`${scheme}://me:secret@localhost:${smtp.port}`);
      expect(outcome).toMatchObject({ kind: 'transient', statusCode: null, error: { kind: 'network' } });
      expect(smtp.lines.filter((line) => line.startsWith('AUTH'))).toEqual([]);
    }
  });

  test('that is not offered any more keeps a password from being sent', { tags: [ATTACK] }, async () => {
    const smtp = await startSmtp({ password: 'secret' });
    expect(await sent(`smtp://me:secret@127.0.0.1:${smtp.port}`)).toMatchObject({ kind: 'transient' });
    expect(smtp.lines.filter((line) => line.startsWith('AUTH'))).toEqual([]);
    const url = `smtp://me:secret@127.0.0.1:${smtp.port}?requireTLS=false`;
    expect(await sent(url)).toMatchObject({ kind: 'accepted' });
  });
});

describe('an answer', () => {
  const answering = async (instead: (line: string) => string | undefined) => {
    const smtp = await startSmtp({ instead });
    return sent(`smtp://127.0.0.1:${smtp.port}`);
  };
  const to = (start: string, answer: string) => (line: string) => (line.startsWith(start) ? answer : undefined);

  test('5xx to the mail is final, whichever step it answers', async () => {
    for (const start of ['MAIL', 'RCPT', 'DATA', '.'])
      expect(await answering(to(start, '550 5.7.1 go away'))).toMatchObject({
        ...{ kind: 'rejected', statusCode: 550 },
        error: { message: 'the mail server answered 550 5.7.1 go away' },
      });
  });

  test('4xx says later, also where only some of the addresses are refused for good', async () => {
    for (const start of ['MAIL', 'RCPT', 'DATA', '.'])
      expect(await answering(to(start, '451 4.3.0 later'))).toMatchObject({
        kind: 'transient',
        statusCode: 451,
      });
    const mixed = (line: string) =>
      line.startsWith('RCPT') ? (line.includes('ops') ? '450 later' : '550 never') : undefined;
    expect(await answering(mixed)).toMatchObject({ kind: 'transient', statusCode: 450 });
  });

  test('to one of two addresses does not send it to the other one twice', async () => {
    const outcome = await answering(to('RCPT TO:<ops', '550 5.1.1 who?'));
    expect(outcome).toMatchObject({ kind: 'accepted', statusCode: 250 });
    expect(outcome).toHaveProperty('body', '250 2.0.0 queued as 4711\nnot to ops@example.com: 550 5.1.1 who?');
  });

  test('of a server that refuses to talk, or a login, is no answer to the mail', async () => {
    const closed = await startSmtp({ greeting: '554 no service' });
    expect(await sent(`smtp://127.0.0.1:${closed.port}`)).toMatchObject({
      kind: 'transient',
      statusCode: null,
    });
    const smtp = await startSmtp({ password: 'right' });
    const wrong = await sent(`smtp://me:wrong@127.0.0.1:${smtp.port}?requireTLS=false`);
    expect(wrong).toMatchObject({ kind: 'transient', statusCode: null, senderStopped: false });
    expect(JSON.stringify(wrong)).toContain('535 5.7.8 no');
    expect(JSON.stringify(wrong)).not.toContain('wrong');
  });
});

describe('without an answer', () => {
  test('nothing was sent where the server is not there, hangs up early, or is no mail server', async () => {
    const server = createServer();
    const { port } = new URL(await listen(server));
    await new Promise((resolve) => server.close(resolve));
    expect(await sent(`smtp://127.0.0.1:${port}`)).toMatchObject({ kind: 'transient', senderStopped: false });
    for (const start of ['EHLO', 'MAIL', 'RCPT', 'DATA']) {
      const smtp = await startSmtp({ instead: (line) => (line.startsWith(start) ? 'close' : undefined) });
      expect(await sent(`smtp://127.0.0.1:${smtp.port}`)).toMatchObject({
        kind: 'transient',
        statusCode: null,
      });
    }
    const early = await startSmtp({ greeting: 'close' });
    expect(await sent(`smtp://127.0.0.1:${early.port}`)).toMatchObject({ kind: 'transient' });
  });

  test('once the text is under way, the outcome is unknown', async () => {
    const smtp = await startSmtp({ instead: (line) => (line === '.' ? 'close' : undefined) });
    expect(await sent(`smtp://127.0.0.1:${smtp.port}`)).toMatchObject({
      kind: 'unknown',
      senderStopped: false,
    });
  });

  test('in time, it is a time-out: before the text nothing was sent, after it that is unknown', async () => {
    const { pass } = settableTimers();
    for (const [start, kind] of [
      ['MAIL', 'transient'],
      ['.', 'unknown'],
    ] as const) {
      const said = Promise.withResolvers<undefined>();
      const smtp = await startSmtp({
        instead: (line) => {
          if (!line.startsWith(start)) return undefined;
          said.resolve(undefined);
          return 'silence';
        },
      });
      const outcome = sent(`smtp://127.0.0.1:${smtp.port}`, { timeoutSeconds: 3 });
      await said.promise;
      pass(3);
      expect(await outcome).toMatchObject({ kind, error: { kind: 'timeout' } });
    }
  });

  test('since firelock stops, it says so, and the kind closes', async () => {
    const stopping = new AbortController();
    const smtp = await startSmtp({
      instead: (line) => {
        if (line === '.') stopping.abort();
        return line === '.' ? 'silence' : undefined;
      },
    });
    const kind = kindAt(`smtp://127.0.0.1:${smtp.port}`);
    const outcome = kind.deliver(TO, attemptOf({ payload: MAIL }), stopping.signal);
    expect(await outcome).toMatchObject({ kind: 'unknown', senderStopped: true });
    await kind.close();
    expect(await kind.deliver(TO, attemptOf({ payload: MAIL }), never)).toMatchObject({
      ...{ kind: 'transient', senderStopped: true },
    });
  });
});

test('nothing is said to the server without a lease, and no text is handed over once it has run out', async () => {
  const smtp = await startSmtp();
  const url = `smtp://127.0.0.1:${smtp.port}`;
  expect(await sent(url, { mayStart: () => false })).toMatchObject({
    kind: 'transient',
    senderStopped: true,
  });
  expect(smtp.lines).toEqual([]);
  let asked = 0;
  expect(await sent(url, { mayStart: () => ++asked === 1 })).toMatchObject({ senderStopped: true });
  expect(smtp.lines.map((line) => line.slice(0, 4))).toEqual(['EHLO']);
});

test('an address that is denied is not called, and the outcome does not name it', { tags: [ATTACK] }, async () => {
  const smtp = await startSmtp();
  const judge = () => Promise.reject(new AddressBlocked('127.0.0.1', 'of a test'));
  const kind = kindAt(`smtp://127.0.0.1:${smtp.port}`, { guard: { judge } });
  const outcome = await kind.deliver(TO, attemptOf({ payload: MAIL }), never);
  expect(outcome).toMatchObject({ kind: 'blocked' });
  expect(JSON.stringify(outcome)).not.toContain('127.0.0.1');
  const metadata = kindAt('smtp://169.254.169.254', { guard: createAddressGuard() });
  expect(await metadata.deliver(TO, attemptOf({ payload: MAIL }), never)).toMatchObject({
    kind: 'blocked',
  });
});

test('without a mail server, or a mail, nothing is sent', async () => {
  const none = createEmailTarget({ clock: systemClock, mail: null });
  expect(await none.deliver(TO, attemptOf({ payload: MAIL }), never)).toMatchObject({ kind: 'transient' });
  const smtp = await startSmtp();
  expect(await sent(`smtp://127.0.0.1:${smtp.port}`, { payload: '{"subject":1}' })).toMatchObject({
    ...{ kind: 'transient', error: { message: 'the payload of the run is no mail' } },
  });
});
