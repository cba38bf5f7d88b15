import { z } from 'zod';

/** The standard variables of OpenTelemetry that firelock follows, by their standard names. */

const PAIRS = 'name=value pairs, separated by commas; values may be percent-encoded';

const text = z.string().optional();

const endpoint = z
  .url({ protocol: /^https?$/ })
  .refine((url) => new URL(url).username === '', 'must not contain a password; use the headers')
  .optional();

const pairs = z
  .string()
  .default('')
  .transform((list, context) => {
    const read: Record<string, string> = {};
    for (const entry of list.split(',').filter((part) => part.trim() !== '')) {
      const [, name = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(entry) ?? [];
      const decoded = name === '' ? undefined : decode(value);
      if (decoded !== undefined) read[name] = decoded;
      // The entry may be a secret, so the message only gives its position.
      else
        context.addIssue({
          code: 'custom',
          message: 'is no name=value',
          path: [String(list.indexOf(entry))],
        });
    }
    return read;
  });

function decode(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
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
  OTEL_EXPORTER_OTLP_PROTOCOL: { hint: 'http/json, the only one that firelock speaks', schema: text },
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: { hint: 'http/json, the only one that firelock speaks', schema: text },
  OTEL_EXPORTER_OTLP_HEADERS: { hint: `headers of each call of the collector: ${PAIRS}`, schema: pairs },
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: { hint: `the same; they go before the above: ${PAIRS}`, schema: pairs },
  OTEL_EXPORTER_OTLP_TIMEOUT: {
    hint: 'milliseconds that a call of the collector may take: a whole number from 1 to 60000 (default 10000)',
    schema: z
      .string()
      .regex(/^\d{1,5}$/)
      .transform(Number)
      .pipe(z.number().min(1).max(60_000))
      .default(10_000),
  },
  OTEL_SERVICE_NAME: {
    hint: 'the name of the service in traces (default firelock)',
    schema: text,
  },
  OTEL_RESOURCE_ATTRIBUTES: { hint: `attributes of the service in traces: ${PAIRS}`, schema: pairs },
  OTEL_TRACES_EXPORTER: {
    hint: 'otlp or none (default otlp, if there is an endpoint)',
    schema: text,
  },
  OTEL_SDK_DISABLED: { hint: 'true: no traces', schema: text },
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
