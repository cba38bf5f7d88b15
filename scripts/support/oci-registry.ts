import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/loopback.ts';
import { HUNG_AFTER_MS, until } from '../../test/support/until.ts';

/** Of Debian; others call it `registry`. */
const PROGRAM = 'docker-registry';

export function hasOciRegistry(): boolean {
  return spawnSync(PROGRAM, ['--version'], { stdio: 'ignore' }).status === 0;
}

/** A registry of images on loopback, without TLS; `host` is its name in those of images. */
export async function startOciRegistry(): Promise<{ host: string; close: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-registry-'));
  const host = `127.0.0.1:${await freePort()}`;
  const configuration = join(folder, 'config.json');
  const storage = { filesystem: { rootdirectory: join(folder, 'data') } };
  // JSON is YAML.
  writeFileSync(
    configuration,
    JSON.stringify({ version: '0.1', log: { level: 'error' }, storage, http: { addr: host } }),
  );
  const server = spawn(PROGRAM, ['serve', configuration], { stdio: 'ignore' });
  await until(
    () =>
      fetch(`http://${host}/v2/`).then(
        ({ ok }) => ok || null,
        () => null,
      ),
    HUNG_AFTER_MS,
  );
  return {
    host,
    close: () => {
      server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
