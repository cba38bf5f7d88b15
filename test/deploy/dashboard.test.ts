import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { readAlerts, readText, tool } from './kit.ts';

interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  datasource?: unknown;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { refId: string; expr: string; datasource?: unknown }[];
}

interface Dashboard {
  uid: string;
  schemaVersion: number;
  panels: Panel[];
  links: { url: string }[];
  templating: { list: { name: string; type: string; datasource?: unknown; definition?: string }[] };
}

const text = readText('deploy/helm/firelock/files/dashboard.json');
const dashboard = JSON.parse(text) as Dashboard;
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

describe('the dashboard', () => {
  test('has the current schema, and reads its data source from a variable', () => {
    expect(dashboard.uid).toBe('firelock');
    expect(dashboard.schemaVersion).toBe(42);
    expect(text).not.toContain('__inputs');
    const variables = dashboard.templating.list.map(({ name, type }) => [name, type]);
    expect(variables).toEqual([
      ['datasource', 'datasource'],
      ['job', 'query'],
      ['instance', 'query'],
      ['runbook', 'textbox'],
    ]);
    for (const { type, datasource } of dashboard.templating.list)
      if (type === 'query') expect(datasource).toEqual(DATASOURCE);
    expect(dashboard.links.map(({ url }) => url)).toEqual(['${runbook}']);
  });

  test('has panels with unique ids, none on top of another', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of dashboard.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });

  test.each(panels.map((panel) => [panel.title, panel] as const))(
    '%s says what it shows, for the chosen job and instances',
    (_, { description = '', datasource, targets = [] }) => {
      expect(description).toMatch(/^\S/);
      expect(datasource).toEqual(DATASOURCE);
      expect(targets.length).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      for (const { expr, ...target } of targets) {
        // Else it is the panel's.
        expect(target.datasource ?? datasource).toEqual(DATASOURCE);
        for (const [, selector] of expr.matchAll(/\b(?:firelock|process|nodejs)_\w+(\{[^}]*\})?/g))
          expect(selector, expr).toContain('{job=~"$job", instance=~"$instance"');
      }
    },
  );

  test('leads to the runbook of every alert, and of nothing else', () => {
    const anchors = [...text.matchAll(/\$\{runbook\}#(\w+)\)/g)].map(([, anchor]) => anchor);
    const alerts = readAlerts().map(({ alert }) => alert.toLowerCase());
    const shown = alerts.filter((alert) => !/deadmansswitch|databasewentback/.test(alert));
    expect([...new Set(anchors)].toSorted()).toEqual(shown.toSorted());
  });

  test('contains only queries that Prometheus understands', async (context) => {
    const rules = panels.flatMap(({ targets = [] }, panel) =>
      targets.map(({ refId, expr }) => ({ record: `panel_${panel}_${refId}`, expr: filledIn(expr) })),
    );
    const folder = await mkdtemp(join(tmpdir(), 'firelock-dashboard-'));
    try {
      const file = join(folder, 'rules.yml');
      await writeFile(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
      expect(await tool(context, 'promtool', 'check', 'rules', file)).toContain(`SUCCESS: ${rules.length} rules found`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

test('docker-compose.yml gives Grafana its data source and its dashboard, and gives no user the right to change them', () => {
  const { services } = parse(readText('docker-compose.yml')) as {
    services: Record<string, { image: string; volumes: string[]; environment: Record<string, string> }>;
  };
  const grafana = services['grafana'];
  expect(grafana?.image).toMatch(/^grafana\/grafana:\d+\.\d+\.\d+$/);
  expect(grafana?.environment).toMatchObject({
    GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
    GF_AUTH_DISABLE_LOGIN_FORM: 'true',
    GF_AUTH_BASIC_ENABLED: 'false',
  });
  const provisioning = 'deploy/grafana/provisioning';
  expect(grafana?.volumes).toEqual([
    `./${provisioning}:/etc/grafana/provisioning:ro`,
    './deploy/helm/firelock/files/dashboard.json:/var/lib/grafana/dashboards/firelock.json:ro',
  ]);
  expect(parse(readText(`${provisioning}/datasources/prometheus.yml`))).toMatchObject({
    datasources: [{ type: 'prometheus', url: 'http://prometheus:9090' }],
  });
  expect(parse(readText(`${provisioning}/dashboards/firelock.yml`))).toMatchObject({
    providers: [{ type: 'file', options: { path: '/var/lib/grafana/dashboards' } }],
  });
});

/** As Grafana would, before it asks. */
function filledIn(expr: string): string {
  return expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*').replaceAll('$instance', '.*');
}
