import { readFileSync } from 'node:fs';
import { call } from '../support/calls.ts';
import { freePort } from '../support/loopback.ts';
import { type Program, ready, startCommand } from '../support/programs.ts';
import { HUNG_AFTER_MS } from '../support/until.ts';
import { within } from '../support/within.ts';
import { IMAGE, LITE } from './build-image.ts';
import type { Podman } from './podman.ts';

/** A daemon in a container. Its process is that of `podman run`, which ends with the exit code of the container. */
export interface Container extends Program {
  readonly name: string;
  readonly url: string;
  put(schedule: string, body: object): Promise<void>;
}

/** The database of a container: one that is there, or its own on a volume of this name. */
type Where = { databaseUrl: string } | { volume: string };

/** As docker-compose.yml gives it. */
export const GRACE_SECONDS = 40;

/** As docker-compose.yml has it, and without the folders of a memory disk that podman adds to `--read-only`. */
const LOCKED = ['--read-only', '--read-only-tmpfs=false', '--cap-drop=all', '--security-opt=no-new-privileges'];

/**
 * Resolves when it is ready. Its network is this machine's, since PostgreSQL and the target are on loopback. podman leaves
 * the health check to timers of systemd, which may not be there: so whoever wants it runs it.
 */
export async function startContainer(podman: Podman, name: string, where: Where): Promise<Container> {
  const port = await freePort();
  const [token = '', line = ''] = createToken(podman);
  const variables = {
    PORT: String(port),
    FIRELOCK_API_TOKENS: line,
    // So that a container that is killed is missed soon.
    FIRELOCK_INSTANCE_TTL_SECONDS: '4',
    FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  };
  const settings = Object.entries(variables).map(([key, value]) => `--env=${key}=${value}`);
  const ofWhere =
    'volume' in where ? [`--volume=${where.volume}:/data`, LITE] : [`--env=DATABASE_URL=${where.databaseUrl}`, IMAGE];
  const { words, env } = podman.command(
    ...['run', '--name', name, '--network=host', '--no-healthcheck', ...LOCKED, ...settings, ...ofWhere],
  );
  const program = startCommand('podman', words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const url = `http://127.0.0.1:${port}`;
  await within(HUNG_AFTER_MS, ready(program, url), `${name} was not ready`).catch((cause: unknown) => {
    throw new Error(`It wrote:\n${program.lines.join('\n')}`, { cause });
  });
  const headers = { authorization: `Bearer ${token}` };
  return {
    ...program,
    name,
    url,
    put: async (schedule, body) => {
      const { status, text } = await call(`${url}/api/v1/schedules/${schedule}`, 'PUT', { body, headers });
      if (status !== 201) throw new Error(`PUT ${schedule} answered ${status}: ${text}`);
    },
  };
}

/** A token, and the line that a daemon wants of it. */
function createToken(podman: Podman): string[] {
  const words = ['token', 'create', 'check', '--role=admin'];
  return podman.ask('run', '--rm', IMAGE, ...words).split('\n');
}

/** Fields of /proc/PID/status of the container's first process, as this machine sees it. */
export function firstProcess(podman: Podman, { name }: Container) {
  const pid = podman.ask('inspect', '--format={{.State.Pid}}', name);
  const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, 'utf8');
  const status = Object.fromEntries(
    read('status')
      .split('\n')
      .map((line) => line.split(':').map((part) => part.trim().replaceAll(/\s+/g, ' '))),
  ) as Record<string, string>;
  return { status, command: read('cmdline').split('\0').filter(Boolean), mounts: read('mountinfo') };
}

/** Sends the signal by which the image is stopped, and kills what is left after the grace. */
export function stopContainer(podman: Podman, { name }: Container): Program {
  const { words, env } = podman.command('stop', `--time=${GRACE_SECONDS}`, name);
  return startCommand('podman', words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}
