/**
 * Makes the files of a release in release/: both npm packages, the chart, the list of what is in the daemon's package
 * (SBOM), and their checksums. `npm run release` builds first.
 *
 *     node scripts/release.ts [--tag=v1.2.3]     fails unless everything has this version, and CHANGELOG.md its date
 *         [--base-digest=sha256:…]               also writes down on which image the release's own is to be built
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { baseImage } from './support/base-image.ts';
import { pack } from './support/package.ts';

const root = join(import.meta.dirname, '..');
const release = join(root, 'release');

const { tag, 'base-digest': digest = '' } = parseArgs({
  options: { tag: { type: 'string' }, 'base-digest': { type: 'string' } },
}).values;
const version = oneVersion(tag);
rmSync(release, { recursive: true, force: true });
pack(root, release, '--ignore-scripts');
pack(join(root, 'clients', 'typescript'), release);
packChart();
writeSbom();
if (digest !== '') writeFileSync(join(release, `firelock-${version}.base-image.txt`), `${baseImage(digest)}\n`);
writeChecksums();
console.log(`Release ${version}:\n${readFileSync(join(release, 'SHA256SUMS'), 'utf8')}`);

function oneVersion(expected: string | undefined): string {
  const read = (path: string) => parse(readText(path)) as Record<string, string>;
  const { version: daemon = '' } = read('package.json');
  const chart = read('deploy/helm/firelock/Chart.yaml');
  const client = read('clients/typescript/package.json');
  const python = /^version = "(.*)"$/m.exec(readText('clients/python/pyproject.toml'))?.[1];
  for (const other of [client['version'], python, chart['version'], chart['appVersion']])
    assert.equal(other, daemon, 'daemon, clients and chart have one version');
  if (expected === undefined) return daemon;
  assert.equal(expected, `v${daemon}`, 'the tag is not the version');
  const heading = readText('CHANGELOG.md')
    .split('\n')
    .find((line) => line.startsWith(`## ${daemon} (`));
  assert.match(heading ?? '', /\(\d{4}-\d\d-\d\d\)$/, 'CHANGELOG.md has no date for it');
  return daemon;
}

/** As `helm package` does: what .helmignore says stays out. */
function packChart(): void {
  const leaveOut = ['--exclude=examples', '--exclude=.helmignore'];
  const archive = join(release, `firelock-chart-${version}.tgz`);
  execFileSync('tar', ['-czf', archive, ...leaveOut, '-C', join(root, 'deploy', 'helm'), 'firelock']);
}

interface Sbom {
  components: { 'bom-ref': string; properties: { name: string }[] }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/**
 * From the lock file alone: what the image installs, and the embedded PostgreSQL, which users may leave out. npm's own
 * `--omit=dev` also leaves out what both the daemon and a tool of development need.
 */
function writeSbom(): void {
  const words = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
  const text = execFileSync('npm', words, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const { components, dependencies, ...rest } = JSON.parse(text) as Sbom;
  const carried = components.filter(
    ({ properties }) => !properties.some(({ name }) => name === 'cdx:npm:package:development'),
  );
  const refs = new Set([`firelock@${version}`, ...carried.map((component) => component['bom-ref'])]);
  const edges = dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
  const sbom = { ...rest, components: carried, dependencies: edges };
  writeFileSync(join(release, `firelock-${version}.sbom.cdx.json`), `${JSON.stringify(sbom, null, 2)}\n`);
}

/** In the form that `sha256sum --check` reads. */
function writeChecksums(): void {
  const lines = readdirSync(release).map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(release, name)));
    return `${hash.digest('hex')}  ${name}\n`;
  });
  writeFileSync(join(release, 'SHA256SUMS'), lines.join(''));
}

function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
