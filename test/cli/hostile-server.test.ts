// @module-tag attack
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Loopback, serveHttp } from '../support/loopback.ts';
import { firelock } from './cli.ts';

const ESCAPE = '\u001b';
/** Colours, a title of the window, a bell, a one-byte sequence (C1), a turned direction, DEL, and lines of its own. */
const HOSTILE = '\u001b[31mEVIL\u001b]0;x\u0007\u009b2J\u202e\u007f\rone\nfirelock: forged\u2028';
const TEXTS = [
  'id description pauseReason error status reason name scheduleId trigger queue workerId key executionId role',
  'timezone host version action by subject outcome local note state at fireAt scheduledFor createdAt cron limit',
].flatMap((names) => names.split(' '));
const THING: Record<string, unknown> = {
  ...Object.fromEntries(TEXTS.map((name) => [name, HOSTILE])),
  attempts: 1,
  maxRunning: 1,
  running: 1,
  enabled: true,
  enforced: true,
  until: HOSTILE,
  labels: { [HOSTILE]: HOSTILE },
  payload: HOSTILE,
  target: { type: HOSTILE, url: HOSTILE },
  dates: [HOSTILE],
  error: { kind: HOSTILE, message: HOSTILE },
  result: { statusCode: 200, body: HOSTILE },
  detail: { [HOSTILE]: HOSTILE },
  attemptLog: [
    { instanceId: HOSTILE, startedAt: HOSTILE, outcome: HOSTILE, error: { kind: HOSTILE, message: HOSTILE } },
  ],
  checks: [{ name: HOSTILE, count: 1 }],
  nextCursor: null,
};

let server: Loopback;
let url: string;
let answer = { status: 200, body: '' };
beforeAll(async () => {
  server = await serveHttp((_, response) => {
    response.writeHead(answer.status, { 'content-type': 'application/json', date: new Date().toUTCString() });
    response.end(answer.body);
  });
  ({ url } = server);
});
afterAll(() => server.close());

const COMMANDS = [
  'schedule list --wide',
  'schedule get a',
  'schedule why a',
  'schedule upcoming a',
  'schedule fire a',
  'schedule pause a',
  'schedule resume a',
  'schedule skip a 2090-01-01T00:00:00Z',
  'schedule delete a --yes',
  'run list --wide',
  'run get 0190b0a0-0000-7000-8000-000000000000',
  'run cancel 0190b0a0-0000-7000-8000-000000000000',
  'calendar list',
  'calendar get a',
  'limit list',
  'limit set a --max 1',
  'maintenance status',
  'queue list',
  'instance list',
  'preview @daily',
  'audit',
  'stats',
  'verify',
  'me',
  'export',
];
const on = (command: string, ...more: string[]) =>
  firelock([...command.split(' '), ...more], { url, terminal: 120, env: { TERM: 'xterm' } });
const own = (colour: string) => `${ESCAPE}[${colour}m`;
const OWN_COLOURS = ['1', '2', '22', '31', '32', '33', '36', '39'].map(own);
/** What a terminal would obey. Colours of firelock itself do not count; the server's red does. */
function obeyed(text: string): string[] | null {
  const marked = text.replaceAll(`${own('31')}EVIL`, '\u0007');
  const rest = OWN_COLOURS.reduce((left, colour) => left.replaceAll(colour, ''), marked);
  return rest.match(/(?!\n)[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu);
}

test.each(COMMANDS)('firelock %s shows what a server says, and the terminal obeys none of it', async (command) => {
  const bodies = [THING, { ...THING, items: [THING] }, HOSTILE];
  for (const body of bodies) {
    answer = { status: 200, body: JSON.stringify(body) };
    const { out, err } = await on(command, '--no-json');
    expect([obeyed(out), obeyed(err)], out + err).toEqual([null, null]);
    expect(out + err).not.toMatch(/^firelock: forged/m);
  }
  const fault = { path: HOSTILE, message: HOSTILE };
  answer = {
    status: 409,
    body: JSON.stringify({ title: HOSTILE, detail: HOSTILE, errors: [fault, fault] }),
  };
  const refused = await on(command, '--no-json');
  expect([obeyed(refused.out), obeyed(refused.err)]).toEqual([null, null]);
  expect(refused.err).toContain('\\u001b[31mEVIL');
  expect(refused.err).not.toMatch(/^firelock: forged/m);
});

test('on a terminal JSON is escaped and means the same; elsewhere it is what the server wrote', async () => {
  const body = JSON.stringify({ items: [THING], nextCursor: null });
  answer = { status: 200, body };
  const shown = await on('limit list', '--json');
  expect(obeyed(shown.out)).toBeNull();
  expect(shown.json()).toEqual(JSON.parse(body));
  const piped = await firelock('limit list', { url });
  expect(piped.out).toBe(`${body}\n`);
});

test('the address of a redirection is escaped', async () => {
  const elsewhere = await serveHttp((_, response) => {
    response.writeHead(302, { location: 'http://x/\u009b2J' }).end();
  });
  const { err } = await firelock('me', { url: elsewhere.url });
  await elsewhere.close();
  expect(err).toContain('\\u009b2J');
  expect(obeyed(err)).toBeNull();
});
