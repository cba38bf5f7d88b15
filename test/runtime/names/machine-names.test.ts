import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createMachineNames, createOtherSources } from '../../../src/runtime/names/resolver.ts';
import { startNameServer } from '../../support/name-server.ts';
import type { Answer, Question } from '../../support/open-name-server.ts';
import { ATTACK } from '../../support/runner/attack.ts';

interface Machine {
  hosts?: string;
  resolv?: string;
  nsswitch?: string;
  answer?: (question: Question) => Answer;
  others?: (name: string) => Promise<{ address: string; family: number }[]>;
  limitMs?: number;
}

/** A machine with these files and this name server. */
async function machine({ hosts = '', resolv = '', nsswitch = '', ...rest }: Machine) {
  const { answer = () => null, others = () => Promise.reject(new Error('not asked')), limitMs = 60_000 } = rest;
  const folder = await mkdtemp(join(tmpdir(), 'firelock-names-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [hostsFile, resolvConf, nsswitchConf] = ['hosts', 'resolv.conf', 'nsswitch.conf'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  await Promise.all([writeFile(hostsFile, hosts), writeFile(resolvConf, resolv), writeFile(nsswitchConf, nsswitch)]);
  const { servers, questions } = await startNameServer(answer);
  const time = { ms: 0 };
  const lookUp = createMachineNames({
    hostsFile,
    resolvConf,
    nsswitchConf,
    servers,
    limitMs,
    askOtherSources: others,
    clock: { now: () => 0, monotonic: () => time.ms },
  });
  const find = async (name: string, signal = new AbortController().signal) =>
    (await lookUp(name, signal)).addresses.map(({ address }) => address);
  const asked = () => [...new Set(questions.map(({ name }) => name))];
  return { find, lookUp, asked, questions, time, hostsFile };
}

const NONE: Answer = {};
const HERE: Answer = { addresses: ['10.0.0.1'] };

describe('the hosts file', () => {
  const HOSTS = '# names\n10.0.0.7 db.test DB2  # two\n\nfd00::7\tdb.test\nnot-an-address x.test\n10.0.0.7 db.test';

  test('comes first, and its names are asked of no server', async () => {
    const { find, asked } = await machine({ hosts: HOSTS });
    expect(await find('db.test')).toEqual(['10.0.0.7', 'fd00::7']);
    expect(await find('db2')).toEqual(['10.0.0.7']);
    expect(await find('db.test.')).toEqual(['10.0.0.7', 'fd00::7']);
    expect(asked()).toEqual([]);
  });

  test('is read again when it has changed', async () => {
    const { find, time, hostsFile } = await machine({ hosts: HOSTS, answer: () => NONE });
    expect(await find('db2')).toEqual(['10.0.0.7']);
    await writeFile(hostsFile, '10.0.0.8 db2 and-more');
    time.ms += 1_000;
    expect(await find('db2')).toEqual(['10.0.0.8']);
    await rm(hostsFile);
    time.ms += 1_000;
    await expect(find('db2')).rejects.toThrow('db2 has no address');
    await writeFile(hostsFile, '');
  });

  test.each(['localhost', 'localhost.', 'app.localhost'])('without it, %s is this machine', async (name) => {
    const { find, asked } = await machine({});
    expect(await find(name)).toEqual(['127.0.0.1', '::1']);
    expect(asked()).toEqual([]);
  });
});

describe('the name servers', () => {
  test('answer with addresses that live as long as the first of them', async () => {
    const { lookUp } = await machine({ answer: () => ({ addresses: ['10.0.0.1', '10.0.0.2'], ttl: 17 }) });
    const { addresses, seconds } = await lookUp('a.test', new AbortController().signal);
    expect(new Set(addresses.map(({ address }) => address))).toEqual(new Set(['10.0.0.1', '10.0.0.2']));
    expect(seconds).toBe(17);
  });

  test.each([
    ['that there is no such name', NONE, 'ENOTFOUND', 'a.test has no address'],
    ['that it has no address', { exists: true }, 'ENOTFOUND', 'a.test has no address'],
    ['that they failed', { rcode: 2 }, 'EAI_AGAIN', 'the name servers answer ESERVFAIL about a.test'],
    ['that they refuse', { rcode: 5 }, 'EAI_AGAIN', 'the name servers answer EREFUSED about a.test'],
  ])('say %s', async (_, answer, code, message) => {
    const { find } = await machine({ answer: () => answer });
    await expect(find('a.test')).rejects.toMatchObject({ code, message });
  });

  test('that say nothing are given up at the limit', async () => {
    const { find } = await machine({ limitMs: 50 });
    await expect(find('a.test')).rejects.toMatchObject({
      code: 'EAI_AGAIN',
      message: 'the name servers do not answer about a.test',
    });
  });

  test('are asked no more once the signal aborts', async () => {
    const caller = new AbortController();
    const { find, asked } = await machine({
      resolv: 'search one.test two.test\noptions ndots:5',
      answer: () => {
        caller.abort();
        return null;
      },
    });
    await expect(find('a.test', caller.signal)).rejects.toThrow('do not answer');
    expect(asked()).toEqual(['a.test.one.test']);
  });

  test('that answer for one family only are not waited for', async () => {
    const { find } = await machine({
      answer: ({ type }) => (type === 'A' ? HERE : null),
      // Far beyond the time limit of the test.
      resolv: 'options timeout:30 attempts:5',
      limitMs: 2 ** 30,
    });
    expect(await find('a.test')).toEqual(['10.0.0.1']);
  });
});

describe('a short name', () => {
  const KUBERNETES = [
    'search jobs.svc.cluster.test svc.cluster.test cluster.test',
    'nameserver 10.96.0.10',
    'options ndots:5',
  ].join('\n');
  const only =
    (...names: string[]) =>
    ({ name }: Question) =>
      names.includes(name) ? HERE : NONE;

  test.each([
    ['db', 'db.jobs.svc.cluster.test', ['db.jobs.svc.cluster.test']],
    ['db.data', 'db.data.svc.cluster.test', ['db.data.jobs.svc.cluster.test', 'db.data.svc.cluster.test']],
    [
      'example.com',
      'example.com',
      ['example.com.jobs.svc.cluster.test', 'example.com.svc.cluster.test', 'example.com.cluster.test', 'example.com'],
    ],
    ['example.com.', 'example.com', ['example.com']],
    ['a.b.c.d.e.f', 'a.b.c.d.e.f', ['a.b.c.d.e.f']],
  ])('%s is %s in a pod', async (name, whole, questions) => {
    const { find, asked } = await machine({ resolv: KUBERNETES, answer: only(whole) });
    expect(await find(name)).toEqual(['10.0.0.1']);
    expect(asked()).toEqual(questions);
  });

  test('with as many dots as ndots is asked as it is first', async () => {
    const { find, asked } = await machine({
      resolv: 'domain wrong.test\nsearch  lan.test. .\n',
      answer: only('a.b.lan.test'),
    });
    expect(await find('a.b')).toEqual(['10.0.0.1']);
    expect(asked()).toEqual(['a.b', 'a.b.lan.test']);
  });

  test('is searched on after a failure, and not after silence', async () => {
    const resolv = 'search one.test two.test';
    const failing = await machine({
      resolv,
      answer: ({ name }) => (name === 'a.one.test' ? { rcode: 2 } : NONE),
    });
    await expect(failing.find('a')).rejects.toThrow('ESERVFAIL');
    expect(failing.asked()).toEqual(['a.one.test', 'a.two.test', 'a']);
    const silent = await machine({ resolv: `${resolv}\noptions attempts:1 timeout:1` });
    await expect(silent.find('a')).rejects.toThrow('do not answer');
    expect(silent.asked()).toEqual(['a.one.test']);
  });
});

describe('other sources of the machine', () => {
  const found = () => Promise.resolve([{ address: '10.0.0.9', family: 4 }]);

  test.each([
    ['hosts: files mdns4_minimal [NOTFOUND=return] dns'],
    ['passwd: files\nhosts:\tfiles resolve [!UNAVAIL=return] dns # comment'],
  ])('are asked for what the name servers do not know: %s', async (nsswitch) => {
    const { find, asked } = await machine({ nsswitch, answer: () => NONE, others: found });
    expect(await find('printer')).toEqual(['10.0.0.9']);
    expect(asked()).toEqual(['printer']);
    expect(await find('printer.local')).toEqual(['10.0.0.9']);
    expect(asked()).toEqual(['printer']);
  });

  test.skipIf(process.platform !== 'linux')('are not asked where there are none', async () => {
    const { find } = await machine({
      nsswitch: 'hosts: files dns # mdns4',
      answer: () => NONE,
      others: found,
    });
    await expect(find('printer.local')).rejects.toThrow('has no address');
  });

  test('are not asked after silence', async () => {
    const { find } = await machine({ nsswitch: 'hosts: files mdns4 dns', others: found, limitMs: 50 });
    await expect(find('printer')).rejects.toThrow('do not answer');
  });
});

const never = new AbortController().signal;

test(
  'getaddrinfo is called for one name at a time, so names without an answer occupy one thread',
  { tags: [ATTACK] },
  async () => {
    const asked: { name: string; answer: () => void }[] = [];
    const ask = createOtherSources((name) => {
      const { promise, resolve } = Promise.withResolvers<{ address: string; family: number }[]>();
      asked.push({ name, answer: () => resolve([{ address: '10.0.0.1', family: 4 }]) });
      return promise;
    });
    const caller = new AbortController();
    const silent = ask('silent.local', caller.signal);
    const leaves = ask('leaves.local', caller.signal);
    const stays = ask('stays.local', never);
    await expect.poll(() => asked.length).toBe(1);
    caller.abort(new Error('given up'));
    await expect(silent).rejects.toThrow('given up');
    await expect(leaves).rejects.toThrow('given up');
    expect(asked.map(({ name }) => name)).toEqual(['silent.local']);
    asked[0]?.answer();
    await expect.poll(() => asked.map(({ name }) => name)).toEqual(['silent.local', 'stays.local']);
    asked[1]?.answer();
    expect(await stays).toEqual([{ address: '10.0.0.1', family: 4 }]);
  },
);

test('a failure of one does not end the turns of others', { tags: [ATTACK] }, async () => {
  const ask = createOtherSources((name) =>
    name === 'bad.local' ? Promise.reject(new Error('no such name')) : Promise.resolve([]),
  );
  await expect(ask('bad.local', never)).rejects.toThrow('no such name');
  expect(await ask('good.local', never)).toEqual([]);
});
