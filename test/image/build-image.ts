import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { BASE } from './base-image.ts';
import type { Podman } from './podman.ts';

const root = join(import.meta.dirname, '..', '..');

export const IMAGE = 'firelock:check';
/** With a PostgreSQL inside. */
export const LITE = 'firelock-lite:check';

/** The folder of the build's containers that has what this machine lends them. */
const LENT = '/var/lib/firelock-check';

/** npm runs each script of a package by it. */
const SHELL = `#!/bin/sh
echo "$npm_package_name $npm_lifecycle_event" >>${LENT}/scripts
exec /bin/sh "$@"
`;

/** Builds the Dockerfile as it is, and says which version that is. See `build`. */
export function buildImage(podman: Podman, version: string): string[] {
  return build(podman, `--label=org.opencontainers.image.version=${version}`, `--tag=${IMAGE}`);
}

/** Builds Dockerfile.lite as it is, on that image. See `build`. */
export function buildLite(podman: Podman): string[] {
  const file = `--file=${join(root, 'Dockerfile.lite')}`;
  return build(podman, file, `--build-arg=FIRELOCK=localhost/${IMAGE}`, `--tag=${LITE}`);
}

/**
 * How npm reaches its registry is this machine's business: it comes in as a file that is
 * mounted while the build runs, and so does npm's cache. Answers the scripts that npm ran, as `PACKAGE EVENT`.
 */
function build(podman: Podman, ...options: string[]): string[] {
  const lent = join(podman.folder, 'lent');
  mkdirSync(lent, { recursive: true });
  writeFileSync(join(lent, 'scripts'), '', { mode: 0o666 });
  writeFileSync(join(lent, 'shell'), SHELL, { mode: 0o755 });
  writeFileSync(join(lent, 'npmrc'), npmConfiguration());
  podman.ask(
    ...['build', '--format=docker', '--layers=false', '--pull=never', '--isolation=chroot', '--network=host'],
    ...[`--volume=${lent}:${LENT}`, `--volume=${join(lent, 'npmrc')}:/usr/local/etc/npmrc:ro`],
    `--volume=${npm('config', 'get', 'cache')}:/root/.npm`,
    ...options,
    root,
  );
  return readFileSync(join(lent, 'scripts'), 'utf8').split('\n').filter(Boolean);
}

/** npm's settings for reaching the registry, none of which is a secret. */
function npmConfiguration(): string {
  const settings = ['registry', 'proxy', 'https-proxy', 'noproxy'].map((name) => [name, npm('config', 'get', name)]);
  const lines = settings.filter(([, value]) => value !== 'null' && value !== '').map((pair) => pair.join('='));
  lines.push('cafile=/etc/ssl/certs/ca-certificates.crt', 'prefer-offline=true', `script-shell=${LENT}/shell`);
  return `${lines.join('\n')}\n`;
}

export interface Image {
  user: string;
  healthCheck: string[];
  labels: Record<string, string>;
  /** Bytes that it adds to its base, unpacked, and how many layers they are. */
  added: number;
  layers: number;
  /** What the image changes of its base, as `A /path`, `C /path` or `D /path`. */
  changes: string[];
}

export function describeImage(podman: Podman): Image {
  const [image, base] = [IMAGE, BASE].map((name) => inspect(podman, name));
  if (!image || !base) throw new Error('podman has no such image');
  return {
    user: image.Config.User,
    healthCheck: image.Healthcheck.Test,
    labels: image.Labels,
    added: image.Size - base.Size,
    layers: image.RootFS.Layers.length - base.RootFS.Layers.length,
    changes: podman.ask('image', 'diff', IMAGE, BASE).split('\n'),
  };
}

/** Bytes of its newest layers, as a registry keeps them. */
export function packedBytes(podman: Podman, layers: number): number {
  const folder = join(podman.folder, 'packed');
  podman.ask('push', '--format=oci', IMAGE, `oci:${folder}`);
  const read = (digest: string) => readFileSync(join(folder, 'blobs', ...digest.split(':')), 'utf8');
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as {
    manifests: { digest: string }[];
  };
  const { layers: all } = JSON.parse(read(index.manifests[0]?.digest ?? '')) as {
    layers: { size: number }[];
  };
  return all.slice(-layers).reduce((sum, { size }) => sum + size, 0);
}

interface Inspected {
  Config: { User: string };
  Healthcheck: { Test: string[] };
  Labels: Record<string, string>;
  Size: number;
  RootFS: { Layers: string[] };
}

function inspect(podman: Podman, name: string): Inspected | undefined {
  return (JSON.parse(podman.ask('image', 'inspect', name)) as Inspected[])[0];
}

function npm(...words: string[]): string {
  return execFileSync('npm', words, { cwd: root, encoding: 'utf8' }).trim();
}
