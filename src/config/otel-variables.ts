import { z } from 'zod';
import { percentDecoded } from '../core/connections/join-url.ts';
import { type EntryFault, boundedNumber, list, plainText } from './variable-kinds.ts';

/** The standard variables of OpenTelemetry that firelock follows, by their standard names. */

const PAIRS = 'name=value pairs, separated by commas; values may be percent-encoded';

const endpoint = z
  .url({ protocol: /^https?$/ })
  .refine((url) => new URL(url).username === '', 'must not contain a password; use the headers')
  .optional();

const pairs = (hint: string) => list<Record<string, string>>(`${hint}: ${PAIRS}`, readPairs, {});

function readPairs(given: string): [read: Record<string, string>, faults: EntryFault[]] {
  const read: Record<string, string> = {};
  const faults: EntryFault[] = [];
  for (const entry of given.split(',').filter((part) => part.trim() !== '')) {
    const [, name = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(entry) ?? [];
    const decoded = name === '' ? null : percentDecoded(value);
    if (decoded !== null) read[name] = decoded;
    // The entry may be a secret, so the message only gives its position.
    else faults.push({ entry: String(given.indexOf(entry)), message: 'is no name=value' });
  }
  return [read, faults];
}

export const OTEL_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    hint: 'an http or https URL of a collector, such as http://127.0.0.1:4318 (default: no traces)',
    schema: endpoint,
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    hint: 'the same with its path, such as http://127.0.0.1:4318/v1/traces (default: the above and /v1/traces)',
    schema: endpoint,
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: plainText('http/json, the only one that firelock speaks'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: plainText('http/json, the only one that firelock speaks'),
  OTEL_EXPORTER_OTLP_HEADERS: pairs('headers of each call of the collector'),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: pairs('the same; they go before the above'),
  OTEL_EXPORTER_OTLP_TIMEOUT: boundedNumber(1, 60_000, 'milliseconds that a call of the collector may take', 10_000),
  OTEL_SERVICE_NAME: plainText('the name of the service in traces (default firelock)'),
  OTEL_RESOURCE_ATTRIBUTES: pairs('attributes of the service in traces'),
  OTEL_TRACES_EXPORTER: plainText('otlp or none (default otlp, if there is an endpoint)'),
  OTEL_SDK_DISABLED: plainText('true: no traces'),
};

type Values = { [N in keyof typeof OTEL_VARIABLES]?: z.output<(typeof OTEL_VARIABLES)[N]['schema']> };

/** Where spans go, and under which name. */
export interface TracesConfig {
  url: string;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** Attributes of the resource: the name of the service, and others that were configured. */
  attributes: Readonly<Record<string, string>>;
}

/** Undefined: firelock makes no traces. */
export function tracesOf(values: Values): TracesConfig | undefined {
  const url = urlOf(values);
  if (url === undefined) return undefined;
  const { OTEL_SERVICE_NAME: service, OTEL_RESOURCE_ATTRIBUTES: attributes = {} } = values;
  return {
    url,
    headers: { ...values.OTEL_EXPORTER_OTLP_HEADERS, ...values.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    timeoutMs: values.OTEL_EXPORTER_OTLP_TIMEOUT ?? 10_000,
    attributes: {
      'service.name': 'firelock',
      ...attributes,
      ...(service ? { 'service.name': service } : {}),
    },
  };
}

/** Checked only if spans are sent: these variables are often set for all programs of a machine. */
export function tracesFaults(values: Values): string[] {
  if (urlOf(values) === undefined) return [];
  const faults: string[] = [];
  for (const name of ['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] as const) {
    const overridden = name === 'OTEL_EXPORTER_OTLP_PROTOCOL' && values.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL;
    const value = values[name];
    if (value !== undefined && value !== 'http/json' && !overridden) {
      faults.push(`${name} is ${JSON.stringify(value)}; expected: ${OTEL_VARIABLES[name].hint}`);
    }
  }
  return faults;
}

function urlOf(values: Values): string | undefined {
  const { OTEL_SDK_DISABLED: disabled, OTEL_TRACES_EXPORTER: exporter = 'otlp' } = values;
  if (disabled?.toLowerCase() === 'true' || !exporter.split(',').includes('otlp')) return undefined;
  const base = values.OTEL_EXPORTER_OTLP_ENDPOINT;
  const own = values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  return own ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`);
}
