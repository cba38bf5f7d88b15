import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { IMAGE, type Image } from './build-image.ts';
import type { Podman } from './podman.ts';

const root = join(import.meta.dirname, '..', '..');

/** A package of the lock file, by its folder. */
interface Locked {
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
}

interface File {
  path: string;
  mode: number;
  uid: number;
}

/** Of what this project makes itself. */
const OWN = [
  /^(LICENSE|package\.json)$/,
  /^dist\/([\w-]+\/)*[\w-]+\.js(\.map)?$/,
  /^dist\/web\/(SOURCES|index\.html|pages\.json|assets\/[\w-]+\.(js|css|svg))$/,
  /^drizzle\/(\d{4}_\w+\.sql|schema\.sql|meta\/[\w.]+\.json)$/,
];

export function carriesWhatRuns(podman: Podman, { changes }: Image): void {
  assert.deepEqual(
    changes.filter((change) => !/^[ACD] \/app(\/|$)/.test(change)),
    [],
    'outside of /app',
  );
  const paths = filesOf(podman).map(({ path }) => path);
  const own = paths.filter((path) => !path.startsWith('node_modules/'));
  assert.deepEqual(
    own.filter((path) => !OWN.some((form) => form.test(path))),
    [],
  );
  for (const needed of ['dist/main.js', 'dist/web/index.html', 'drizzle/meta/_journal.json'])
    assert.ok(paths.includes(needed), `${needed} is missing`);
  const isThere = ([folder]: [string, Locked]) => paths.includes(`${folder}/package.json`);
  const wanted = Map.groupBy(
    lockedPackages(),
    ([, { dev, optional, devOptional }]) => !(dev ?? optional ?? devOptional),
  );
  assert.deepEqual(
    wanted.get(true)?.filter((one) => !isThere(one)),
    [],
    'packages that it lacks',
  );
  assert.deepEqual(wanted.get(false)?.filter(isThere), [], 'packages of development');
}

/** Whoever gets into the daemon can change no file of it, and become nobody else by one. */
export function ownsNoFile(podman: Podman): void {
  const loose = filesOf(podman).filter(({ mode, uid }) => uid !== 0 || (mode & 0o6022) !== 0);
  assert.deepEqual(loose.slice(0, 10), []);
}

/** Everything below /app but folders and links, as the container's own Node finds it. */
function filesOf(podman: Podman): File[] {
  const program = `
    const files = fs.readdirSync('/app', { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    console.log(JSON.stringify(files.map((entry) => {
      const path = entry.parentPath + '/' + entry.name;
      const { mode, uid } = fs.statSync(path);
      return { path: path.slice('/app/'.length), mode, uid };
    })))`;
  return JSON.parse(podman.ask('run', '--rm', '--entrypoint=node', IMAGE, '-e', program)) as File[];
}

/** But for the project itself. */
function lockedPackages(): [string, Locked][] {
  const text = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Record<string, Locked> };
  return Object.entries(packages).filter(([folder]) => folder !== '');
}
