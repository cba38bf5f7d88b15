import { describe, expect, test } from 'vitest';
import { findUnknownTemplates, renderTemplate, templateFault } from '../../../src/core/http/template.ts';

const values = {
  runId: '0192f0c4-1c00-7abc-8def-0123456789ab',
  runName: 'nightly@2026-11-20T09:00:00.000Z',
  scheduleId: 'nightly',
  scheduledFor: Date.UTC(2026, 10, 20, 9),
  attempt: 3,
};

describe('renderTemplate', () => {
  test('fills in every name, wherever it occurs', () => {
    const text = '{{runId}}|{{runName}}|{{scheduleId}}|{{scheduledFor}}|{{attempt}}|{{attempt}}';
    expect(renderTemplate(text, values)).toBe(
      '0192f0c4-1c00-7abc-8def-0123456789ab|nightly@2026-11-20T09:00:00.000Z|nightly|2026-11-20T09:00:00.000Z|3|3',
    );
  });

  test('uses the run id for a run without a name, and nothing without a schedule', () => {
    const oneOff = { ...values, runName: null, scheduleId: null };
    expect(renderTemplate('{{runName}}/{{scheduleId}}/', oneOff)).toBe(`${values.runId}//`);
  });

  test('encodes the values and nothing else', () => {
    expect(renderTemplate('/a b/{{runName}}', values, encodeURIComponent)).toBe(
      '/a b/nightly%402026-11-20T09%3A00%3A00.000Z',
    );
  });

  test.each(['plain', '', '{{', '{{runId', '}}{{', '{runId}', '{{nothing}}'])('leaves %j as it is', (text) => {
    expect(renderTemplate(text, values)).toBe(text);
  });

  test('does not render templates inside of values', () => {
    expect(renderTemplate('{{scheduleId}}', { ...values, scheduleId: '{{runId}}' })).toBe('{{runId}}');
  });
});

describe('templateFault', () => {
  test.each(['a {{runId', '{{', '{{runId}} {{', '{{runId}'])('finds the braces of %j that are never closed', (text) => {
    expect(templateFault(text)).toBe('has a {{ that is never closed by }}');
    expect(templateFault(text, true)).toBe('has a {{ that is never closed by }}');
  });

  test.each(['', 'plain', '}}', '{runId}', '{{runId}}}}'])('finds nothing in %j', (text) => {
    expect(templateFault(text)).toBeNull();
  });
});

describe('findUnknownTemplates', () => {
  test('lists unknown names, in order', () => {
    expect(findUnknownTemplates('{{runId}} {{runid}} {{ attempt }} {{}} {{{runId}}}')).toEqual([
      'runid',
      ' attempt ',
      '',
      '{runId',
    ]);
  });

  test('finds nothing in text without closed braces, however many are open', () => {
    expect(findUnknownTemplates('{{'.repeat(200_000))).toEqual([]);
  });
});
