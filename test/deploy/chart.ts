import type { TestContext } from 'vitest';
import { parse } from 'yaml';
import { askHelm, readText, type Rule } from './kit.ts';

const CHART = 'deploy/helm/firelock';
const SECRET = { secret: { name: 's' } };

/** The oldest that the chart allows, and the newest that there are schemas for. */
const VERSIONS = ['1.27', '1.37'];

const CASES = {
  minimal: SECRET,
  production: parse(readText(`${CHART}/examples/production.yaml`)) as object,
  unusual: {
    secret: { name: 's', keys: { apiTokens: '', migrationDatabaseUrl: 'DIRECT', secretKeys: 'KEYS' } },
    allowAnonymous: true,
    migrations: 'initContainer',
    basePath: '/cron',
    ports: { metrics: 0 },
    shutdownSeconds: 90,
    preStopSeconds: 0,
    spread: 'none',
    image: { digest: `sha256:${'a'.repeat(64)}` },
    httpRoute: { enabled: true, parentRefs: [{ name: 'gateway' }], hostnames: ['cron.example.org'] },
    serviceMonitor: { enabled: true },
    networkPolicy: { enabled: true },
    podDisruptionBudget: { maxUnavailable: '50%' },
    serviceAccount: { create: false, name: 'jobs' },
    env: { FIRELOCK_MAX_RECOVERY_AGE_SECONDS: 31_622_400 },
    extraEnv: [{ name: 'PGAPPNAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
  },
  noSecret: {},
  nobodyIsAsked: { secret: { name: 's', keys: { apiTokens: '' } } },
  unknownKey: { ...SECRET, replicas: 3 },
  unknownInner: { ...SECRET, image: { version: '1' } },
  secretInEnv: { ...SECRET, env: { FIRELOCK_API_TOKENS: 'ci:admin:00' } },
  /** An object of Kubernetes', which the chart passes on unseen. */
  nonsense: { ...SECRET, podSecurityContext: { runAsNobody: true } },
  badMode: { ...SECRET, migrations: 'yes' },
};

interface Probe {
  httpGet: { path: string; port: string; httpHeaders: object[] };
}

interface Container {
  image: string;
  args: string[];
  env: { name: string; value?: string }[];
  volumeMounts: unknown[];
  lifecycle?: unknown;
  securityContext: object;
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface PodSpec {
  automountServiceAccountToken: boolean;
  terminationGracePeriodSeconds: number;
  securityContext: object;
  containers: [Container];
  initContainers: [Container];
}

/** What the tests look at, of all kinds together. */
interface Spec {
  replicas: number;
  strategy: { rollingUpdate: object };
  template: { metadata: { labels: object }; spec: PodSpec };
  maxUnavailable: number;
  selector: { matchLabels: object };
  policyTypes: string[];
  ingress: object[];
  egress: object[];
  endpoints: object[];
  groups: { rules: Rule[] }[];
}

interface Document {
  kind: string;
  metadata: { name: string; labels: object };
  spec: Spec;
  data: Record<string, string>;
}

interface Rendered {
  error?: string;
  documents: Document[];
  notes: string;
  faults: string[];
}

interface Answer {
  lint: { messages: { severity: number; error: string }[]; errors: string[] };
  rendered: Rendered[];
}

let answered: Promise<Answer> | undefined;

function answer(context: TestContext): Promise<Answer> {
  const requests = Object.values(CASES).map((values) => {
    return { values, name: 'demo', namespace: 'jobs', versions: VERSIONS };
  });
  return (answered ??= askHelm<Answer>(context, { chart: CHART, lintWith: SECRET, requests }));
}

export async function lint(context: TestContext): Promise<Answer['lint']> {
  return (await answer(context)).lint;
}

/** What Helm makes of a case; all of them are rendered once, as loading Helm takes most of the time. */
export async function rendered(context: TestContext, name: keyof typeof CASES): Promise<Rendered> {
  const found = (await answer(context)).rendered[Object.keys(CASES).indexOf(name)];
  if (found === undefined) throw new Error(`${name} was not rendered`);
  return found;
}

export function only({ documents }: Rendered, kind: string, suffix = ''): Document {
  const found = documents.filter((one) => one.kind === kind && one.metadata.name === `demo-firelock${suffix}`);
  const [first] = found;
  if (first === undefined || found.length > 1) throw new Error(`${found.length} of ${kind} ${suffix}`);
  return first;
}
