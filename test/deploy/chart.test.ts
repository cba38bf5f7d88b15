// @module-tag long
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { isAllowedHost, parseAllowedHosts } from '../../src/config/address-ranges.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { lint, only, rendered } from './chart.ts';
import { readAlerts, readText, tool } from './kit.ts';

/** Kinds that no cluster has by itself, and so no schema of Kubernetes. */
const OPERATORS = ['ServiceMonitor', 'PrometheusRule', 'HTTPRoute'];

describe('the chart', () => {
  test('passes the linter, and every case the schemas of old and new clusters', async (context) => {
    for (const name of ['minimal', 'production', 'unusual'] as const) {
      const { error, documents, faults } = await rendered(context, name);
      expect(error, name).toBeUndefined();
      expect(documents.length, name).toBeGreaterThan(3);
      expect([...new Set(faults)].filter((fault) => !OPERATORS.some((kind) => fault.startsWith(kind)))).toEqual([]);
    }
    const { errors, messages } = await lint(context);
    expect(errors).toEqual([]);
    // 1 is information: that there is no icon.
    expect(messages.filter(({ severity }) => severity > 1)).toEqual([]);
  });

  test('leaves objects of Kubernetes open, and the schemas find what is wrong in them', async (context) => {
    const { error, faults } = await rendered(context, 'nonsense');
    expect(error).toBeUndefined();
    expect(faults.join()).toMatch(/Deployment: .*runAsNobody/);
  });

  test.for([
    ['noSecret', /secret\.name is missing/],
    ['nobodyIsAsked', /the API would ask no caller who it is/],
    ['unknownKey', /replicas/],
    ['unknownInner', /version/],
    ['secretInEnv', /FIRELOCK_API_TOKENS/],
    ['badMode', /migrations/],
  ] as const)('refuses %s, and says why', async ([name, why], context) => {
    expect((await rendered(context, name)).error).toMatch(why);
  });

  test('replaces one instance at a time, and gives each the time to drain', async (context) => {
    const { spec } = only(await rendered(context, 'minimal'), 'Deployment');
    expect(spec.replicas).toBe(3);
    expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 1, maxSurge: 1 });
    expect(spec.template.spec.terminationGracePeriodSeconds).toBe(30 + 10 + 5);
    const unusual = only(await rendered(context, 'unusual'), 'Deployment').spec.template.spec;
    expect(unusual.terminationGracePeriodSeconds).toBe(90 + 10);
    expect(unusual.containers[0].lifecycle).toBeUndefined();
    expect(only(await rendered(context, 'minimal'), 'PodDisruptionBudget').spec.maxUnavailable).toBe(1);
  });

  test('probes the daemon at its own paths, below its base path', async (context) => {
    const probes = async (name: 'minimal' | 'unusual') => {
      const [container] = only(await rendered(context, name), 'Deployment').spec.template.spec.containers;
      const { startupProbe, livenessProbe, readinessProbe } = container;
      const all = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet);
      for (const { httpHeaders } of all) expect(httpHeaders).toEqual([{ name: 'Host', value: 'localhost' }]);
      return all.map(({ port, path }) => `${port} ${path}`);
    };
    expect(await probes('minimal')).toEqual(['metrics /healthz', 'metrics /healthz', 'metrics /readyz']);
    expect(await probes('unusual')).toEqual(['http /cron/healthz', 'http /cron/healthz', 'http /cron/readyz']);
  });

  test('gives the daemon variables that it knows, secrets by reference only, and no rights', async (context) => {
    for (const name of ['minimal', 'production', 'unusual'] as const) {
      const { spec } = only(await rendered(context, name), 'Deployment').spec.template;
      const [container] = spec.containers;
      const { env } = container;
      const known = [...Object.keys(VARIABLES), 'FIRELOCK_SECRET_KEYS', 'FIRELOCK_SCHEDULES_FILE', 'PGAPPNAME'];
      expect(env.map((one) => one.name).filter((one) => !known.includes(one))).toEqual([]);
      expect(new Set(env.map((one) => one.name)).size).toBe(env.length);
      for (const one of env)
        if (/DATABASE_URL|TOKENS$|SECRET/.test(one.name)) expect(one.value, one.name).toBeUndefined();
      expect(spec.automountServiceAccountToken).toBe(false);
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  test('lists the hosts that an API without tokens answers by: its Service and private addresses', async (context) => {
    const hosts = async (name: 'minimal' | 'unusual') => {
      const [{ env }] = only(await rendered(context, name), 'Deployment').spec.template.spec.containers;
      return env.find((one) => one.name === 'FIRELOCK_ALLOWED_HOSTS')?.value;
    };
    expect(await hosts('minimal')).toBeUndefined();
    const [read, faults] = parseAllowedHosts((await hosts('unusual')) ?? '');
    expect(faults).toEqual([]);
    const names = ['demo-firelock', '.jobs', '.svc', '.cluster.local'];
    expect(read.names).toEqual(names.map((_, index) => names.slice(0, index + 1).join('')));
    for (const host of ['demo-firelock.jobs', '10.244.1.7', '172.17.0.2', 'fd00:10::7'])
      expect([host, isAllowedHost(host, read)]).toEqual([host, true]);
    expect(isAllowedHost('192.0.2.1', read)).toBe(false);
  });

  test('writes numbers as the daemon reads them', async (context) => {
    const [{ env }] = only(await rendered(context, 'unusual'), 'Deployment').spec.template.spec.containers;
    expect(env).toContainEqual({ name: 'FIRELOCK_MAX_RECOVERY_AGE_SECONDS', value: '31622400' });
  });

  test('migrates by a hook, by an init container, or leaves it to the instances', async (context) => {
    const kinds = async (name: 'minimal' | 'production') =>
      (await rendered(context, name)).documents.map(({ kind }) => kind);
    expect(await kinds('minimal')).not.toContain('Job');
    const job = only(await rendered(context, 'production'), 'Job', '-migrate');
    expect(job.spec.template.spec.containers[0].args).toEqual(['migrate']);
    // The Service and the disruption budget must not take its pods for instances.
    const { selector } = only(await rendered(context, 'production'), 'Service').spec;
    expect(job.spec.template.metadata.labels).not.toMatchObject(selector);
    const unusual = only(await rendered(context, 'unusual'), 'Deployment').spec.template.spec;
    const [migrate] = unusual.initContainers;
    expect(migrate.args).toEqual(['migrate']);
    expect(migrate.env.map(({ name }) => name)).toEqual([
      'DATABASE_URL',
      'FIRELOCK_MIGRATION_DATABASE_URL',
      'LOG_LEVEL',
    ]);
    expect(unusual.containers[0].image).toMatch(/^firelock@sha256:a{64}$/);
  });

  test('brings schedules as the file that the daemon reads, and the dashboard as it is', async (context) => {
    const production = await rendered(context, 'production');
    const { data } = only(production, 'ConfigMap', '-schedules');
    expect(parse(data['schedules.yaml'] ?? '')).toMatchObject({ schedules: [{ id: 'nightly-report' }] });
    const [container] = only(production, 'Deployment').spec.template.spec.containers;
    expect(container.env).toContainEqual({
      name: 'FIRELOCK_SCHEDULES_FILE',
      value: '/etc/firelock/schedules.yaml',
    });
    expect(container.volumeMounts).toEqual([{ name: 'schedules', mountPath: '/etc/firelock', readOnly: true }]);
    const dashboard = only(production, 'ConfigMap', '-dashboard').data['firelock.json'] ?? '';
    const url = 'https://git.example.org/ops/firelock/docs/runbook.md';
    expect(JSON.parse(dashboard)).toEqual(
      JSON.parse(readText('deploy/helm/firelock/files/dashboard.json').replaceAll('docs/runbook.md', url)),
    );
  });

  test('scrapes what the rules need, and has all rules except those that are turned off', async (context) => {
    const production = await rendered(context, 'production');
    const { spec } = only(production, 'PrometheusRule');
    const rules = spec.groups.flatMap((group) => group.rules);
    const wanted = readAlerts().filter(({ alert }) => alert !== 'FirelockDeadMansSwitch');
    const runbook = 'https://git.example.org/ops/firelock/docs/runbook.md';
    expect(rules.map(({ alert }) => alert)).toEqual(wanted.map(({ alert }) => alert));
    for (const { expr, annotations } of rules) {
      expect(expr).toContain('job="demo-firelock", namespace="jobs"');
      expect(expr).not.toContain('job="firelock"');
      expect(annotations.runbook_url).toMatch(new RegExp(`^${runbook}#`));
    }
    const monitor = only(production, 'ServiceMonitor').spec;
    expect(monitor.endpoints).toMatchObject([
      {
        port: 'metrics',
        path: '/metrics',
        relabelings: [{ targetLabel: 'job', replacement: 'demo-firelock' }],
      },
    ]);
    const metrics = only(production, 'Service', '-metrics');
    expect(metrics.metadata.labels).toMatchObject(monitor.selector.matchLabels);
    expect(only(production, 'Service').metadata.labels).not.toMatchObject(monitor.selector.matchLabels);

    const folder = await mkdtemp(join(tmpdir(), 'firelock-chart-'));
    try {
      await writeFile(join(folder, 'rules.yml'), stringify(spec));
      expect(await tool(context, 'promtool', 'check', 'rules', join(folder, 'rules.yml'))).toContain(
        `SUCCESS: ${wanted.length} rules found`,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('lets through what the values of the network policy say, and the DNS', async (context) => {
    const { spec } = only(await rendered(context, 'production'), 'NetworkPolicy');
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(spec.ingress).toMatchObject([
      { ports: [{ port: 'http' }] },
      { ports: [{ port: 'metrics' }], from: [{ namespaceSelector: {} }] },
    ]);
    expect(spec.egress).toMatchObject([
      {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
      { to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
    ]);
    const open = only(await rendered(context, 'unusual'), 'NetworkPolicy').spec;
    expect(open.policyTypes).toEqual(['Ingress']);
    expect(open.ingress).toHaveLength(1);
  });
});
