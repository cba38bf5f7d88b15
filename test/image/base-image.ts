import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, globSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { baseImage } from '../../scripts/support/base-image.ts';
import type { Podman } from './podman.ts';

/** The name in the Dockerfile's FROM. */
export const BASE = baseImage();

/** What the Dockerfile's own commands and npm call, beside Node. */
const PROGRAMS = ['sh', 'env', 'rm', 'cat', 'mkdir', 'chown'];

/** Packages in C open these by name, so no list of what a program is linked with has them. */
const LIBRARIES = 'lib{c,m,rt,dl,pthread,util,resolv,nss_dns,nss_files}.so*';

const BUNDLE = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Puts the base image into podman's storage: the machine's own copy, or one that is made of this machine's Node, npm and C
 * library. No registry is asked. Answers which it is.
 */
export function provideBase(podman: Podman): string {
  const archive = join(podman.folder, 'base.tar');
  const { status } = spawnSync('podman', ['save', `--output=${archive}`, BASE], { stdio: 'ignore' });
  if (status === 0) {
    podman.ask('load', `--input=${archive}`);
    rmSync(archive);
    return `${BASE} as this machine's podman has it`;
  }
  makeBase(podman);
  return `made of this machine's Node ${process.versions.node}, npm and C library under the name ${BASE}; not the image of a registry`;
}

function makeBase(podman: Podman): void {
  assert.equal(BASE, `node:${process.versions.node}-slim`, 'the Dockerfile has another Node than what runs this');
  const tree = join(podman.folder, 'base');
  for (const folder of ['tmp', 'root', 'usr/bin', 'dev', 'proc', 'sys'])
    mkdirSync(join(tree, folder), { recursive: true });
  chmodSync(join(tree, 'tmp'), 0o1777);
  const programs = PROGRAMS.map((name) => output('which', name));
  put(process.execPath, join(tree, 'usr', 'local', 'bin', 'node'));
  for (const [index, path] of programs.entries()) put(path, join(tree, 'bin', PROGRAMS[index] ?? ''));
  symlinkSync('/bin/env', join(tree, 'usr', 'bin', 'env'));
  for (const library of librariesOf([process.execPath, ...programs])) put(library, join(tree, library));
  const npm = dirname(dirname(output('realpath', output('which', 'npm'))));
  cpSync(npm, join(tree, 'usr', 'local', 'lib', 'npm'), { recursive: true });
  symlinkSync('../lib/npm/bin/npm-cli.js', join(tree, 'usr', 'local', 'bin', 'npm'));
  put(BUNDLE, join(tree, BUNDLE));
  writeFileSync(join(tree, 'etc', 'passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n');
  writeFileSync(join(tree, 'etc', 'group'), 'root:x:0:\nnode:x:1000:\n');
  const recipe = join(podman.folder, 'base.Dockerfile');
  writeFileSync(recipe, 'FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/bin:/bin\n');
  podman.ask('build', '--format=docker', `--file=${recipe}`, `--tag=${BASE}`, tree);
  rmSync(tree, { recursive: true });
}

function librariesOf(programs: readonly string[]): Set<string> {
  const linked = programs.flatMap((path) => output('ldd', path).match(/\/\S+/g) ?? []);
  const libc = linked.find((path) => path.endsWith('/libc.so.6'));
  assert.ok(libc, 'this machine has no glibc');
  return new Set([...linked.filter((path) => !path.endsWith(':')), ...globSync(join(dirname(libc), LIBRARIES))]);
}

/** The file that a link leads to, under the link's name. */
function put(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

function output(program: string, ...words: string[]): string {
  return execFileSync(program, words, { encoding: 'utf8' }).trim();
}
