import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { lookAtFile, versionOfFile } from '../../../src/targets/login/secret-file-look.ts';
import { createSecretFiles } from '../../../src/targets/login/secret-files.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { until } from '../../support/until.ts';

let directory: string;

beforeEach(() => {
  const home = mkdtempSync(join(tmpdir(), 'firelock-secrets-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  directory = join(home, 'secrets');
  mkdirSync(directory);
});

describe('a secret file', () => {
  test.each([
    ['a text', 'a text'],
    ['a text\n', 'a text'],
    ['a text\r\n', 'a text'],
    ['a text\n\n', 'a text\n'],
    ['\n a\ntext ', '\n a\ntext '],
    ['ä€😀', 'ä€😀'],
    ['x'.repeat(64 * 1024), 'x'.repeat(64 * 1024)],
  ])('is read whole, but for one final newline: %.12j', async (content, expected) => {
    write('token', content);
    expect(await filesAtRest().read('token')).toBe(expected);
  });

  test('may stand in a folder', async () => {
    mkdirSync(join(directory, 'billing'));
    write('billing/token', 'secret');
    expect(await filesAtRest().read('billing/token')).toBe('secret');
  });

  test('is not read again while it does not change', async () => {
    write('token', 'secret');
    const { files, looks } = counting();
    for (let i = 0; i < 5; i++) expect(await files.read('token')).toBe('secret');
    expect(looks).toEqual(['token']);
  });

  test.each([
    ['written in place', (content: string) => write('token', content)],
    ['replaced', (content: string) => replace('token', content)],
  ])('is read anew when it is %s', async (_, change) => {
    const files = filesAtRest();
    for (const content of ['first', 'second', 'a longer one']) {
      change(content);
      expect(await files.read('token')).toBe(content);
    }
  });

  test('is looked at once for all who ask at the same moment', async () => {
    write('token', 'secret');
    const { files, looks } = counting();
    const all = await Promise.all(Array.from({ length: 100 }, () => files.read('token')));
    expect(new Set(all)).toEqual(new Set(['secret']));
    expect(looks).toHaveLength(1);
  });

  test('is read anew for who asks after it was changed, also while others are being served', async () => {
    write('token', 'first');
    const begun = Promise.withResolvers<undefined>();
    const goOn = Promise.withResolvers<undefined>();
    let looks = 0;
    const look: typeof lookAtFile = async (...of) => {
      const found = await lookAtFile(...of);
      if (++looks > 1) return found;
      begun.resolve(undefined);
      await goOn.promise;
      return found;
    };
    const files = createSecretFiles(directory, { clock: LATER, look });
    const before = files.read('token');
    await begun.promise;
    write('token', 'second');
    const after = files.read('token');
    goOn.resolve(undefined);
    expect(await before).toBe('first');
    expect(await after).toBe('second');
  });

  test('follows the links of Kubernetes, which all stay inside', async () => {
    publish('..2026_11_20', 'first');
    symlinkSync('..2026_11_20', join(directory, '..data'));
    symlinkSync('..data/token', join(directory, 'token'));
    const files = filesAtRest();
    expect(await files.read('token')).toBe('first');
    publish('..2026_11_21', 'second');
    symlinkSync('..2026_11_21', join(directory, '..data_tmp'));
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    rmSync(join(directory, '..2026_11_20'), { recursive: true });
    expect(await files.read('token')).toBe('second');
  });

  test('may be in a directory that is a link itself', async () => {
    write('token', 'secret');
    symlinkSync(directory, `${directory}-link`);
    expect(await createSecretFiles(`${directory}-link`, { clock: LATER }).read('token')).toBe('secret');
  });

  test('cannot be read if no directory is configured', async () => {
    await expect(createSecretFiles(null).read('token')).rejects.toThrow(
      'the secret file "token" cannot be read: FIRELOCK_SECRETS_DIR is not set',
    );
  });
});

describe('a secret file that is being written', () => {
  test('is taken once two looks agree', async () => {
    write('token', 'hal');
    const { files, pauses } = young([() => write('token', 'half'), () => undefined]);
    expect(await files.read('token')).toBe('half');
    expect(pauses()).toBe(2);
  });

  test('is not taken while it changes; meanwhile the last one is in use', async () => {
    write('token', 'first');
    const { files } = young([() => undefined, ...growing(), () => undefined]);
    expect(await files.read('token')).toBe('first');
    write('token', 's');
    expect(await files.read('token')).toBe('first');
    expect(await files.read('token')).toBe('s+++');
  });

  test('is not taken while it is empty; meanwhile the last one is in use', async () => {
    write('token', 'first');
    const { files } = young([]);
    expect(await files.read('token')).toBe('first');
    truncateSync(join(directory, 'token'));
    expect(await files.read('token')).toBe('first');
    write('token', '\n');
    expect(await files.read('token')).toBe('first');
    write('token', 'second');
    expect(await files.read('token')).toBe('second');
  });

  test.each([0, 60_000])('is not taken if it changes during the look, %i ms after the last change', async (age) => {
    write('token', 'secret');
    const look: typeof lookAtFile = async (...of) => ({ ...(await lookAtFile(...of)), version: null });
    const { files } = young([], { look, clock: { now: () => Date.now() + age } });
    await expect(files.read('token')).rejects.toThrow('the secret file "token" is being written');
  });

  test('and has the same size and the same times as before is seen to have changed', async () => {
    write('token', 'first');
    const look: typeof lookAtFile = async (...of) => ({ ...(await lookAtFile(...of)), version: 'the same' });
    const { files } = young([], { look, versionOf: () => Promise.resolve('the same') });
    expect(await files.read('token')).toBe('first');
    write('token', 'other');
    expect(await files.read('token')).toBe('other');
  });

  test('has no last one if it is removed: it is no longer in use', async () => {
    write('token', 'secret');
    const { files } = young([]);
    expect(await files.read('token')).toBe('secret');
    rmSync(join(directory, 'token'));
    await expect(files.read('token')).rejects.toThrow('does not exist');
    write('token', 'second');
    expect(await files.read('token')).toBe('second');
  });

  test('is missed only once it is missing twice', async () => {
    write('token', 'first');
    const { files } = young([() => undefined, () => write('token', 'second')]);
    expect(await files.read('token')).toBe('first');
    rmSync(join(directory, 'token'));
    expect(await files.read('token')).toBe('second');
  });
});

describe('a file that cannot be a secret', { tags: [ATTACK] }, () => {
  test.each(['../token', '/etc/passwd', 'a/../../token', '..', ''])('has the name %j', async (name) => {
    writeFileSync(join(dirname(directory), 'token'), 'outside');
    await expect(filesAtRest().read(name)).rejects.toThrow(`the secret file ${JSON.stringify(name)} `);
  });

  test.each([
    ['link', () => symlinkSync('../outside', join(directory, 'link'))],
    ['link', () => symlinkSync(join(dirname(directory), 'outside'), join(directory, 'link'))],
    ['folder/outside', () => symlinkSync('..', join(directory, 'folder'))],
    ['link', () => symlinkSync('/etc/passwd', join(directory, 'link'))],
  ])('is reached by a link that leads out: %s', async (name, link) => {
    writeFileSync(join(dirname(directory), 'outside'), 'outside');
    link();
    await expect(filesAtRest().read(name)).rejects.toThrow(
      `the secret file ${JSON.stringify(name)} leads out of the directory`,
    );
  });

  test('is beside a directory whose name begins as that of the secrets', async () => {
    mkdirSync(`${directory}-of-others`);
    writeFileSync(`${directory}-of-others/token`, 'outside');
    symlinkSync('../secrets-of-others/token', join(directory, 'token'));
    await expect(filesAtRest().read('token')).rejects.toThrow('leads out of the directory');
  });

  test('is a folder, a pipe or a device', async () => {
    mkdirSync(join(directory, 'folder'));
    execFileSync('mkfifo', [join(directory, 'pipe')]);
    for (const name of ['folder', 'pipe'])
      await expect(filesAtRest().read(name)).rejects.toThrow('is not a regular file');
    await expect(createSecretFiles('/dev').read('zero')).rejects.toThrow('is not a regular file');
  });

  test.each([
    ['is larger than 64 KiB', 'x'.repeat(64 * 1024 + 1)],
    ['contains a NUL', 'sec\0ret'],
    ['is not UTF-8', Buffer.from([0x73, 0xff])],
    ['is not UTF-8', Buffer.from([0xc0, 0xae])],
    ['is empty', ''],
    ['is empty', '\n'],
  ])('%s, and no message has its content', async (fault, content) => {
    write('token', content);
    const error: unknown = await filesAtRest()
      .read('token')
      .catch((thrown: unknown) => thrown);
    expect(error).toEqual(new Error(`the secret file "token" ${fault}`));
  });

  test('has another size than it says', async (context) => {
    if (!existsSync('/proc/self/status')) context.skip('this system has no such files');
    const look = await lookAtFile(`/proc/${process.pid}`, 'status');
    expect(look.content).toHaveProperty('text', expect.stringContaining(`Pid:\t${process.pid}`));
  });

  test('is missing, or is kept from firelock', async () => {
    await expect(filesAtRest().read('token')).rejects.toThrow('the secret file "token" does not exist');
    await expect(createSecretFiles(`${directory}/none`).read('token')).rejects.toThrow('does not exist');
  });
});

describe('a directory that does not answer', { tags: [ATTACK] }, () => {
  test('occupies one thread, and lets no one wait in vain', async () => {
    const mount = Promise.withResolvers<undefined>();
    let underWay = 0;
    const look: typeof lookAtFile = async (...of) => {
      underWay++;
      await mount.promise;
      return lookAtFile(...of);
    };
    for (const name of ['a', 'b', 'c']) write(name, name);
    const files = createSecretFiles(directory, { clock: LATER, look, limitMs: 20 });
    const readings = await Promise.allSettled(['a', 'b', 'a', 'c'].map((name) => files.read(name)));
    expect(readings.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    // At once, without a place in line.
    for (let i = 0; i < 1000; i++)
      await expect(files.read('c')).rejects.toThrow('cannot be read: the directory does not answer');
    expect(underWay).toBe(1);
    mount.resolve(undefined);
    expect(await until(() => files.read('c').catch(() => null))).toBe('c');
  });
});

const LATER = { now: () => Date.now() + 60_000 };

/** What was written a moment ago has been there for a minute. */
function filesAtRest() {
  return createSecretFiles(directory, { clock: LATER });
}

function counting() {
  const looks: string[] = [];
  const look: typeof lookAtFile = (of, name) => {
    looks.push(name);
    return lookAtFile(of, name);
  };
  return { files: createSecretFiles(directory, { clock: LATER, look, versionOf: versionOfFile }), looks };
}

/** Every file was changed a moment ago, and between two looks the next of these happens. */
function young(between: (() => void)[], rest: Parameters<typeof createSecretFiles>[1] = {}) {
  let pauses = 0;
  const pause = () => {
    pauses++;
    between.shift()?.();
    return Promise.resolve();
  };
  const files = createSecretFiles(directory, { clock: { now: () => 0 }, pause, ...rest });
  return { files, pauses: () => pauses };
}

function growing(): (() => void)[] {
  return Array.from({ length: 3 }, () => () => appendFileSync(join(directory, 'token'), '+'));
}

function write(name: string, content: string | Buffer): void {
  writeFileSync(join(directory, name), content);
}

function replace(name: string, content: string): void {
  write(`${name}.new`, content);
  renameSync(join(directory, `${name}.new`), join(directory, name));
}

function publish(folder: string, content: string): void {
  mkdirSync(join(directory, folder));
  write(`${folder}/token`, content);
}
