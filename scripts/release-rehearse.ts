/**
 * Publishes the files in release/ to registries on loopback, and installs from these as a user does: the packages by npm, the images by
 * podman. `npm run release` comes first.
 *
 *     npm run release:rehearse -- [--report=FILE]     FILE gets {"passed": N, "failed": M}
 *
 * Where this machine has no podman, or Debian's docker-registry, it leaves the images out and says why.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { buildImage, buildLite, IMAGE, LITE } from '../test/image/build-image.ts';
import { provideBase, BASE } from '../test/image/base-image.ts';
import { type Container, startContainer } from '../test/image/container.ts';
import { type Podman, findPodman, reasonOf, tryRuntimes } from '../test/image/podman.ts';
import { freePort } from '../test/support/loopback.ts';
import { type Program, listening, startCommand } from '../test/support/programs.ts';
import { HUNG_AFTER_MS } from '../test/support/until.ts';
import { within } from '../test/support/within.ts';
import { type Check, runChecks } from './support/checks.ts';
import { type NpmRegistry, hasOciRegistry, startNpmRegistry, startOciRegistry } from './support/registries.ts';
import { shellOf } from './support/package.ts';

interface Stage {
  /** Of a user who has nothing: folders for the work and for npm's cache. */
  readonly home: string;
  readonly npm: NpmRegistry;
  readonly written: string[];
  program?: Program;
  container?: Container;
  images: { host: string } | null;
}

/** Images as they are built, and their names in a registry. */
const TAGS = [
  [IMAGE, 'firelock'],
  [LITE, 'firelock-lite'],
] as const;

/** From the call of npx, what it fetches being there, to the first answer that it is ready. */
const MOST_SECONDS = 20;

const root = join(import.meta.dirname, '..');
const release = join(root, 'release');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
/** Not in one go: the registry that it talks to is in this process. */
const run = promisify(execFile);
const { report } = parseArgs({ options: { report: { type: 'string' } } }).values;

const packages: Check<Stage>[] = [
  ['npm publishes both packages, and no version twice', publishes],
  ['npx firelock in an empty folder starts a PostgreSQL, the dashboard and the API', startsByNpx],
  [`the second time it is ready within ${MOST_SECONDS} s`, startsSoon],
  ['the client is installed by its name', installsClient],
];
const images: Check<Stage>[] = [
  ['both images are pushed', pushes],
  ['the image is pulled by its name, and says its version', pulls],
  ['firelock-lite is pulled by its name, and is ready with nothing but a volume', startsLite],
];

const podman = findReady();
if ('reason' in podman) console.log(`SKIP the images: ${podman.reason}`);
await runChecks({
  ...{ name: 'rehearsal', checks: 'reason' in podman ? packages : [...packages, ...images], setStage },
  wrote: ({ written, program, container }) =>
    [...written, ...(program?.lines ?? []), ...(container?.lines ?? [])].join('\n'),
  report,
});

function findReady(): Podman | { reason: string } {
  const found = findPodman();
  if (found === undefined) return { reason: 'podman is not installed' };
  process.once('exit', () => found.remove());
  if (!hasOciRegistry()) return { reason: 'docker-registry is not installed' };
  try {
    provideBase(found);
    const refused = tryRuntimes(found, BASE);
    return refused === undefined ? found : { reason: `podman starts no container here: ${refused}` };
  } catch (error) {
    return { reason: `podman builds nothing here: ${reasonOf(error)}` };
  }
}

async function setStage(cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const home = mkdtempSync(join(tmpdir(), 'firelock-rehearsal-'));
  // The embedded PostgreSQL of root runs as somebody else.
  chmodSync(home, 0o755);
  cleanup.push(() => rmSync(home, { recursive: true, force: true }));
  for (const folder of ['work', 'client']) mkdirSync(join(home, folder));
  const npm = await startNpmRegistry(asked('npm', 'config', 'get', 'registry'));
  cleanup.push(() => npm.close());
  const token = `//${new URL(npm.url).host}/:_authToken=rehearsal`;
  // Of the packages that are fetched elsewhere, npm has some already.
  writeFileSync(
    join(home, 'npmrc'),
    `registry=${npm.url}\n${token}\nreplace-registry-host=never\naudit=false\nfund=false\n`,
  );
  const stage: Stage = { home, npm, written: [], images: null };
  cleanup.push(() => stage.program?.kill());
  if (!('reason' in podman)) {
    const registry = await startOciRegistry();
    cleanup.push(() => registry.close());
    cleanup.push(() => void podman.ask('rm', '--all', '--force', '--time=0'));
    stage.images = registry;
  }
  return stage;
}

/** In a folder of the user, whose npm knows the registry on loopback only. */
function shellIn({ home }: Stage, folder: string) {
  const { cwd, env } = shellOf(join(home, folder));
  const npm = {
    ...{ npm_config_userconfig: join(home, 'npmrc'), npm_config_cache: join(home, 'cache') },
    // How this machine trusts the usual registry.
    NODE_EXTRA_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'],
  };
  return { cwd, env: { ...env, ...npm, npm_config_yes: 'true' } };
}

async function publishes(stage: Stage) {
  const publish = (name: string) =>
    run('npm', ['publish', join(release, `${name}-${version}.tgz`), '--access=public'], shellIn(stage, 'work'));
  for (const name of ['firelock', 'firelock-client']) await publish(name);
  await assert.rejects(publish('firelock'));
}

async function startsByNpx(stage: Stage) {
  console.log(`     ready after ${await secondsToReady(stage)} s, with what it fetches`);
}

async function startsSoon(stage: Stage) {
  const seconds = await secondsToReady(stage);
  console.log(`     ready after ${seconds} s`);
  assert.ok(seconds <= MOST_SECONDS, 'it is slow');
}

/** Starts it by npx, asks for all that a user sees first, and ends it by Ctrl-C's signal. */
async function secondsToReady(stage: Stage): Promise<number> {
  const { cwd, env } = shellIn(stage, 'work');
  const began = performance.now();
  // A terminal sends Ctrl-C to npx and to what it has started.
  const options = { cwd, env: { ...env, PORT: String(await freePort()) }, detached: true };
  stage.program = startCommand('npx', ['firelock'], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const daemon = await within(HUNG_AFTER_MS, listening(stage.program), 'it did not listen');
  await within(HUNG_AFTER_MS, daemon.ready(), 'it was not ready');
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  for (const path of ['/', '/docs/', '/api/v1/schedules'])
    assert.equal((await daemon.call('GET', path)).status, 200, path);
  process.kill(-stage.program.pid, 'SIGINT');
  await within(HUNG_AFTER_MS, stage.program.exited, 'it did not end');
  return seconds;
}

async function installsClient(stage: Stage) {
  const shell = shellIn(stage, 'client');
  await run('npm', ['install', '--loglevel=error', 'firelock-client'], shell);
  const program = `import { createClient } from 'firelock-client'; console.log(typeof createClient({ url: 'http://127.0.0.1' }).putSchedule)`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], shell);
  assert.equal(stdout.trim(), 'function');
}

function theirs({ images: registry }: Stage): { podman: Podman; nameOf: (image: string) => string } {
  assert.ok(registry !== null && !('reason' in podman));
  return { podman, nameOf: (image) => `${registry.host}/${image}:${version}` };
}

function pushes(stage: Stage) {
  const { podman: there, nameOf } = theirs(stage);
  buildImage(there, version);
  buildLite(there);
  for (const [image, name] of TAGS) {
    there.ask('push', '--tls-verify=false', image, `docker://${nameOf(name)}`);
    there.ask('untag', image);
  }
}

function pulls(stage: Stage) {
  const { podman: there, nameOf } = theirs(stage);
  for (const [image, name] of TAGS) {
    there.ask('pull', '--tls-verify=false', nameOf(name));
    there.ask('tag', nameOf(name), image);
  }
  assert.equal(there.ask('run', '--rm', nameOf('firelock'), '--version'), `firelock ${version}`);
}

async function startsLite(stage: Stage) {
  const { podman: there } = theirs(stage);
  stage.container = await startContainer(there, 'rehearsal', { volume: 'rehearsal' });
}

function asked(program: string, ...words: string[]): string {
  return execFileSync(program, words, { encoding: 'utf8' }).trim();
}
