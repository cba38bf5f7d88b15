import { Counter, Gauge, type Metric, type Registry } from 'prom-client';

/** Makes metrics in a registry. */
export function metricsIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: (name: string, help: string, ...labelNames: string[]) => new Gauge({ name, help, labelNames, registers }),
    /** A gauge that each scrape reads. */
    readGauge: (name: string, help: string, value: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(value());
        },
      }),
    /** The same, of several things: `values` answers each name and its value. */
    readGauges: (name: string, help: string, label: string, values: () => [name: string, value: number][]) =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [of, value] of values()) this.set({ [label]: of }, value);
        },
      }),
    seconds: (name: string, help: string, label?: string) => new SecondsHistogram(registry, name, help, label),
  };
}

/** Milliseconds to minutes: from a fire on time to one that waited for a restart. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

interface Series {
  /** By bucket, each without those below it; one more for what is above all bounds. */
  counts: number[];
  sum: number;
}

interface Sample {
  metricName: string;
  labels: Record<string, string | number>;
  value: number;
}

/**
 * A histogram of seconds, with one label at most. Each fire observes several values, and prom-client's own histogram makes objects and
 * looks up texts for each.
 */
export class SecondsHistogram {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #label: string | undefined;
  readonly #series = new Map<string, Series>();

  constructor(registry: Registry, name: string, help: string, label?: string) {
    this.name = name;
    this.help = help;
    this.#label = label;
    if (label === undefined) this.#begin('');
    // Of a metric, a registry uses no more than what this class has.
    registry.registerMetric(this as unknown as Metric);
  }

  observe(seconds: number, labelValue = ''): void {
    const series = this.#series.get(labelValue) ?? this.#begin(labelValue);
    let bucket = 0;
    while (bucket < BOUNDS.length && seconds > (BOUNDS[bucket] ?? Infinity)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  /** Asked by the registry at each scrape. */
  get() {
    const { name, help, type, aggregator } = this;
    const values = [...this.#series].flatMap(([labelValue, series]) =>
      samplesOf(name, this.#label === undefined ? {} : { [this.#label]: labelValue }, series),
    );
    return Promise.resolve({ name, help, type, aggregator, values });
  }

  #begin(labelValue: string): Series {
    const series = { counts: new Array<number>(BOUNDS.length + 1).fill(0), sum: 0 };
    this.#series.set(labelValue, series);
    return series;
  }
}

function samplesOf(name: string, labels: Record<string, string>, { counts, sum }: Series): Sample[] {
  let count = 0;
  const buckets = counts.map((inBucket, index) => {
    count += inBucket;
    return { metricName: `${name}_bucket`, labels: { le: BOUNDS[index] ?? '+Inf', ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
