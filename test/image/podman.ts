import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** podman with a storage of its own: what the machine has it neither sees nor changes. */
export interface Podman {
  /** A folder for whatever is to vanish with the storage. */
  readonly folder: string;
  readonly version: string;
  /** What runs containers, by the name that podman takes; known once `tryRuntimes` has found one. */
  runtime: string | undefined;
  /** What it answers; throws unless it succeeds. */
  ask(...words: string[]): string;
  /** The whole command line of a call, for whoever starts it as a process. */
  readonly command: (...words: string[]) => { words: string[]; env: NodeJS.ProcessEnv };
  remove(): void;
}

const LIMIT_MS = 400_000;

/** Limits and networks that podman sets by itself need rights that a container around it may lack. */
const CONFIGURATION = `
[containers]
default_ulimits = []
netns = "host"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
`;

/** Undefined where it is not installed. */
export function findPodman(): Podman | undefined {
  const { status, stdout } = spawnSync('podman', ['--version'], { encoding: 'utf8' });
  if (status !== 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'firelock-podman-'));
  const configuration = join(folder, 'containers.conf');
  writeFileSync(configuration, CONFIGURATION);
  const env = { ...process.env, CONTAINERS_CONF: configuration };
  const storage = [`--root=${join(folder, 'storage')}`, `--runroot=${join(folder, 'run')}`];
  const podman: Podman = {
    folder,
    version: stdout.trim(),
    runtime: undefined,
    command: (...words) => {
      const runtime = podman.runtime === undefined ? [] : [`--runtime=${podman.runtime}`];
      return { words: [...storage, ...runtime, ...words], env };
    },
    ask: (...words) => {
      const { words: all } = podman.command(...words);
      const options = { env, encoding: 'utf8', timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 } as const;
      return execFileSync('podman', all, { ...options, stdio: ['ignore', 'pipe', 'pipe'] }).trim();
    },
    remove: () => {
      spawnSync('podman', [...storage, 'rm', '--all', '--force', '--time=0'], { env, stdio: 'ignore' });
      spawnSync('podman', [...storage, 'image', 'unmount', '--all', '--force'], { env, stdio: 'ignore' });
      for (const path of mountedBelow(folder)) spawnSync('umount', [path], { stdio: 'inherit' });
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return podman;
}

/** Lets each runtime start a container of the image; answers why the last one could not, or undefined. */
export function tryRuntimes(podman: Podman, image: string): string | undefined {
  let reason: string | undefined;
  for (const runtime of [undefined, 'runc', 'crun']) {
    podman.runtime = runtime;
    try {
      podman.ask('run', '--rm', image, 'node', '--version');
      podman.runtime ??= podman.ask('info', '--format={{.Host.OCIRuntime.Name}}');
      return undefined;
    } catch (error) {
      reason ??= reasonOf(error);
    }
  }
  return reason;
}

/** What a program that failed said last. */
export function reasonOf(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  return stderr?.trim().split('\n').at(-1) ?? message;
}

/** The innermost first. */
function mountedBelow(folder: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  return mounts
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${folder}/`))
    .reverse();
}
