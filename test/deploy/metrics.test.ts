import { expect, test } from 'vitest';
import { daemonHere } from '../support/daemon-here.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { metricsIn, readAlerts, readText } from './kit.ts';

const runbook = readText('docs/runbook.md');

test('a daemon has every metric that rules, dashboard and pages name, and answers as the runbook says', async () => {
  const database = await createMigratedDatabase();
  try {
    const daemon = await daemonHere(database.url);
    const text = String((await daemon.call('GET', '/metrics')).body);
    const known = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const sources = {
      alerts: readAlerts().flatMap(({ expr, annotations }) => metricsIn(expr + annotations.description)),
      dashboard: metricsIn(readText('deploy/helm/firelock/files/dashboard.json')),
      runbook: metricsIn(runbook),
    };
    for (const [source, names] of Object.entries(sources)) {
      expect(names.length, source).toBeGreaterThan(5);
      expect(
        names.filter((name) => !known.has(name)),
        source,
      ).toEqual([]);
    }

    const paths = [...runbook.matchAll(/"\$FIRELOCK(\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(10);
    for (const path of paths) expect((await daemon.call('GET', path)).status, path).toBe(200);
  } finally {
    await database.drop();
  }
});
