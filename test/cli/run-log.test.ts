import { describe, expect, test } from 'vitest';
import { createLogText } from '../../src/cli/terminal/shown-text.ts';
import { quietApi } from '../api/api.ts';
import { type Loopback, serveHttp } from '../support/loopback.ts';
import { append, claimedRun, complete } from '../support/run-logs.ts';
import { until } from '../support/until.ts';
import { firelock } from './cli.ts';

const api = quietApi();
const NOISE = Buffer.concat([Buffer.from('\u001b[31mröd\u001b[0m \u001b]0;title\u0007'), Buffer.from([0xff, 0])]);
const waiters = (count: number) => until(() => (api.logFollowers.waiting() === count ? true : null));

describe('firelock run log', () => {
  test('writes the bytes of a run into a pipe as they are, and says what was left out', async () => {
    const run = await claimedRun(api);
    await append(api, run, NOISE);
    await append(api, run, 'end', { offset: 1000 });
    const pieces: Buffer[] = [];
    const onOut = (said: string | Uint8Array) => void pieces.push(Buffer.from(said));
    const { code, err } = await firelock(['run log', run.id], { url: api.url, onOut });
    expect([code, err]).toEqual([0, `${1000 - NOISE.length} bytes were left out here\n`]);
    expect(Buffer.concat(pieces)).toEqual(Buffer.concat([NOISE, Buffer.from('end')]));
  });

  test('leaves colours to a terminal, and nothing else that it would obey', async () => {
    const run = await claimedRun(api);
    await append(api, run, NOISE);
    const { out } = await firelock(['run log', run.id], { url: api.url, terminal: 80 });
    expect(out).toBe('\u001b[31mröd\u001b[0m \\u001b]0;title\\u0007\ufffd\\u0000\u001b[0m');
  });

  test('follows a run until its end', async () => {
    const run = await claimedRun(api);
    const following = firelock(['run log -f', run.id], { url: api.url });
    await waiters(1);
    await append(api, run, 'one\n');
    await waiters(1);
    await append(api, run, 'two\n', { offset: 4 });
    await waiters(1);
    await complete(api, run);
    expect(await following).toMatchObject({ code: 0, out: 'one\ntwo\n', err: '' });
    expect((await firelock(['run log', run.id, '--attempt', '2'], { url: api.url })).out).toBe('');
  });

  test('stops following at Ctrl-C, and goes on when the server is back', async () => {
    const run = await claimedRun(api);
    await append(api, run, 'one\n');
    const stop = new AbortController();
    const said: string[] = [];
    const onOut = (text: string | Uint8Array) => void said.push(text.toString());
    const following = firelock(['run log -f', run.id], { url: api.url, signal: stop.signal, onOut });
    await waiters(1);
    stop.abort();
    expect((await following).code).toBe(0);
    let calls = 0;
    const flaky = await serveOnce(() => (calls += 1) > 1);
    const { err, out } = await firelock(['run log -f', run.id], { url: flaky.url });
    await flaky.close();
    expect(out).toBe('x');
    expect(err).toMatch(/; retrying\nthe server answers again\n$/);
  });

  test('says so where there is no such run, or no log of it', async () => {
    const none = await firelock('run log 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60', { url: api.url });
    expect([none.code, none.err]).toEqual([3, 'firelock: there is no run 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60\n']);
    const other = await serveHttp((_, response) => void response.end('x'));
    const { code, err } = await firelock('run log a', { url: other.url });
    await other.close();
    expect([code, err]).toEqual([
      1,
      `firelock: the server at ${other.url} says nothing about the log; check FIRELOCK_URL\n`,
    ]);
  });
});

function serveOnce(isBack: () => boolean): Promise<Loopback> {
  return serveHttp((_, response) => {
    if (!isBack()) return void response.writeHead(503).end();
    const said = { offset: '1', skipped: '0', attempt: '1', complete: 'true' };
    const headers = Object.entries(said).map(([name, value]) => [`firelock-log-${name}`, value] as const);
    response.writeHead(200, Object.fromEntries(headers)).end('x');
  });
}

test('colours, characters and ends of lines that two parts share are whole', () => {
  const bytes = Buffer.from('a\r\nb\rc \u001b[1;38;5;200mö\u001b[m \u001b[2J \u001b[31');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const text = createLogText();
    const marked = text.take(bytes.subarray(0, cut)) + text.take(bytes.subarray(cut)) + text.end();
    const [mark = ''] = /[\da-f-]{36}/.exec(marked) ?? [];
    expect(marked.replaceAll(mark, '^')).toBe('a\nb\nc ^[1;38;5;200mö^[m \\u001b[2J \\u001b[31^[0m');
  }
});
