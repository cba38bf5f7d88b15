import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { LONG } from '../support/runner/long.ts';
import { readAlerts, readText, tool } from './kit.ts';

const rules = readAlerts();
const names = rules.map(({ alert }) => alert);

describe('the alerts', () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s says what is wrong, how bad it is and where to read on, for the job that is scraped',
    (alert, { expr, labels, annotations }) => {
      expect(labels.severity).toMatch(alert === 'FirelockDeadMansSwitch' ? /^none$/ : /^(warning|critical)$/);
      expect(annotations.summary).toMatch(/\S.*\.$/);
      expect(annotations.description).toMatch(/\S.*\.\n?$/);
      expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
      const selectors = expr.match(/\b(up|(firelock|process|nodejs)_\w+)(\{[^}]*\})?/g) ?? [];
      if (alert !== 'FirelockDeadMansSwitch') expect(selectors).not.toEqual([]);
      for (const selector of selectors) expect(selector).toContain('{job="firelock"');
    },
  );

  test('have a name each, and unit tests that make them fire and keep them quiet', () => {
    expect(new Set(names).size).toBe(names.length);
    const { tests } = parse(readText('deploy/alerts.test.yml')) as { tests: { name: string }[] };
    const tested = names.flatMap((alert) => [`${alert} fires`, `${alert} is quiet`]);
    const alwaysFires = 'FirelockDeadMansSwitch is quiet';
    expect(new Set([...tests.map(({ name }) => name), alwaysFires])).toEqual(new Set([...tested, 'annotations']));
  });

  test('are rules and a configuration that Prometheus takes', async (context) => {
    expect(await tool(context, 'promtool', 'check', 'rules', 'deploy/helm/firelock/files/alerts.yml')).toContain(
      `SUCCESS: ${names.length} rules found`,
    );
    expect(await tool(context, 'promtool', 'check', 'config', 'deploy/prometheus.yml')).toContain(
      'SUCCESS: 1 rule files found',
    );
  });

  test('fire, and are quiet, as their unit tests say', { tags: [LONG] }, async (context) => {
    expect(await tool(context, 'promtool', 'test', 'rules', 'deploy/alerts.test.yml')).toContain('SUCCESS');
  });
});

describe('the runbook', () => {
  const headings = [...readText('docs/runbook.md').matchAll(/^### (\w+)$/gm)].map(([, name]) => name);

  test('has a section for each alert, and for nothing else that looks like one', () => {
    expect(headings.toSorted()).toEqual(names.toSorted());
  });

  test.each(headings)('explains %s, and says what to do', (heading) => {
    const [, section = ''] = readText('docs/runbook.md').split(`### ${heading}\n`);
    const [text = ''] = section.split('\n## ')[0]?.split('\n### ') ?? [];
    expect(text).toMatch(/\*\*(Look at|Do)\*\*/);
  });
});
