/** A run as the API answers it, as far as a request tells of it. */
export interface SentRun {
  id: string;
  scheduledFor: string;
}

/** A request without the headers that firelock sends to every target. */
export interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** What the system answers, and what becomes of the run; `pending`: it is tried again. */
export interface RecipeAnswer {
  statusCode: number;
  body: string;
  headers?: Record<string, string>;
  status: 'succeeded' | 'failed' | 'unknown' | 'pending';
}

export interface Recipe {
  /** As the page has it. */
  origin: string;
  request: (run: SentRun) => Sent;
  answers: readonly RecipeAnswer[];
}

const json = (path: string, body: string, headers: Record<string, string> = {}, method = 'POST'): Sent => ({
  method,
  path,
  headers: { 'content-type': 'application/json', ...headers },
  body,
});
const form = (path: string, body: string, headers: Record<string, string> = {}): Sent =>
  json(path, body, { ...headers, 'content-type': 'application/x-www-form-urlencoded' });

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`firelock:${password}`).toString('base64')}`,
});

/** What the connections of the page name in FIRELOCK_SECRETS_DIR, beside the certificate of Kubernetes. */
export const SECRET_FILES = {
  'kubernetes/token': 'eyJ.kubernetes',
  'google/access-token': 'ya29.google',
  'airflow/token': 'eyJ.airflow',
};

/** Of docs/recipes.md, by the schedules: what each sends, byte for byte, and what the answers mean. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  'github-build': {
    origin: 'https://api.github.com',
    request: ({ id }) =>
      json('/repos/example/app/actions/workflows/build.yml/dispatches', `{"ref": "main", "inputs": {"run": "${id}"}}`, {
        ...bearer('github_pat_example'),
        accept: 'application/vnd.github+json',
        'x-github-api-version': '2022-11-28',
      }),
    answers: [
      { statusCode: 204, body: '', status: 'succeeded' },
      { statusCode: 502, body: '', status: 'unknown' },
      { statusCode: 422, body: '{"message":"No ref found for: main"}', status: 'failed' },
    ],
  },
  'slack-standup': {
    origin: 'https://hooks.slack.com',
    request: () => json('/services/T0EXAMPLE/B0EXAMPLE/example', '{"text": "Stand-up in five minutes"}'),
    answers: [
      { statusCode: 200, body: 'ok', status: 'succeeded' },
      { statusCode: 404, body: 'no_service', status: 'failed' },
    ],
  },
  'slack-report': {
    origin: 'https://slack.com',
    request: () =>
      json('/api/chat.postMessage', '{"channel": "C0EXAMPLE", "text": "The report of the week is ready"}', {
        ...bearer('xoxb-example'),
        'content-type': 'application/json; charset=utf-8',
      }),
    answers: [
      { statusCode: 200, body: '{"ok":true,"ts":"1732442400.000100"}', status: 'succeeded' },
      { statusCode: 200, body: '{"ok":false,"error":"channel_not_found"}', status: 'failed' },
      { statusCode: 429, body: '{"ok":false,"error":"ratelimited"}', status: 'pending' },
    ],
  },
  'kubernetes-cleanup': {
    origin: 'https://kubernetes.default.svc',
    request: ({ id, scheduledFor }) =>
      json(
        '/apis/batch/v1/namespaces/jobs/jobs',
        `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job-${id}"}, "spec": {"backoffLimit": 0,` +
          ' "ttlSecondsAfterFinished": 86400, "template": {"spec": {"restartPolicy": "Never", "containers":' +
          ' [{"name": "cleanup", "image": "registry.example.com/cleanup:1", "args": ["--for",' +
          ` "${scheduledFor}"]}]}}}}`,
        bearer(SECRET_FILES['kubernetes/token']),
      ),
    answers: [
      { statusCode: 201, body: '{"kind":"Job","metadata":{"name":"job-0199"}}', status: 'succeeded' },
      {
        statusCode: 409,
        body: '{"kind":"Status","message":"jobs.batch \\"job-0199\\" already exists","reason":"AlreadyExists"}',
        status: 'succeeded',
      },
      {
        statusCode: 409,
        body: '{"kind":"Status","message":"Operation cannot be fulfilled on resourcequotas","reason":"Conflict"}',
        status: 'pending',
      },
      { statusCode: 403, body: '{"kind":"Status","reason":"Forbidden"}', status: 'failed' },
    ],
  },
  'sqs-invoices': {
    origin: 'http://127.0.0.1:8005',
    request: ({ id }) =>
      form(
        '/123456789012/invoices.fifo',
        `Action=SendMessage&Version=2012-11-05&MessageGroupId=firelock&MessageDeduplicationId=${id}` +
          '&MessageBody=%7B%22month%22%3A%20%22last%22%7D',
      ),
    answers: [
      {
        statusCode: 200,
        body: '<SendMessageResponse><SendMessageResult><MessageId>5fea</MessageId></SendMessageResult></SendMessageResponse>',
        status: 'succeeded',
      },
      { statusCode: 200, body: '<html>The health check of another service</html>', status: 'pending' },
      {
        statusCode: 403,
        body: '<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>',
        status: 'failed',
      },
    ],
  },
  'cloud-run-figures': {
    origin: 'https://run.googleapis.com',
    request: ({ id }) =>
      json(
        '/v2/projects/example/locations/europe-west1/jobs/figures:run',
        `{"overrides": {"containerOverrides": [{"env": [{"name": "RUN_ID", "value": "${id}"}]}]}}`,
        bearer(SECRET_FILES['google/access-token']),
      ),
    answers: [
      { statusCode: 200, body: '{"name":"projects/example/operations/1"}', status: 'succeeded' },
      { statusCode: 401, body: '{"error":{"status":"UNAUTHENTICATED"}}', status: 'pending' },
      { statusCode: 502, body: '', status: 'unknown' },
      { statusCode: 403, body: '{"error":{"status":"PERMISSION_DENIED"}}', status: 'failed' },
    ],
  },
  'airflow2-load': {
    origin: 'https://airflow2.example.com',
    request: ({ id }) =>
      json('/api/v1/dags/load/dagRuns', `{"dag_run_id": "${id}", "conf": {"table": "orders"}}`, basic('example')),
    answers: [
      { statusCode: 200, body: '{"dag_id":"load","state":"queued"}', status: 'succeeded' },
      { statusCode: 409, body: '{"title":"Conflict","status":409}', status: 'succeeded' },
      { statusCode: 404, body: '{"title":"DAG not found","status":404}', status: 'failed' },
    ],
  },
  'airflow3-load': {
    origin: 'https://airflow3.example.com',
    request: ({ id }) =>
      json(
        '/api/v2/dags/load/dagRuns',
        `{"dag_run_id": "${id}", "logical_date": null, "conf": {"table": "orders"}}`,
        bearer(SECRET_FILES['airflow/token']),
      ),
    answers: [
      { statusCode: 200, body: '{"dag_id":"load","state":"queued"}', status: 'succeeded' },
      { statusCode: 409, body: '{"detail":{"reason":"Unique constraint violation"}}', status: 'succeeded' },
      { statusCode: 401, body: '{"detail":"Invalid JWT token"}', status: 'pending' },
      { statusCode: 422, body: '{"detail":[{"type":"missing"}]}', status: 'failed' },
    ],
  },
  'jenkins-nightly': {
    origin: 'https://jenkins.example.com',
    request: ({ id, scheduledFor }) =>
      form(
        '/job/nightly/buildWithParameters',
        `RUN_ID=${id}&FOR=${encodeURIComponent(scheduledFor)}`,
        basic('example-api-token'),
      ),
    answers: [
      {
        statusCode: 201,
        headers: { location: 'https://jenkins.example.com/queue/item/7/' },
        body: '',
        status: 'succeeded',
      },
      { statusCode: 502, body: '', status: 'unknown' },
      { statusCode: 404, body: 'Not Found', status: 'failed' },
    ],
  },
  'storage-marker': {
    origin: 'https://storage.googleapis.com',
    request: ({ scheduledFor }) =>
      json(
        `/example-bucket/days/${encodeURIComponent(scheduledFor)}.json`,
        '{"closed": true}',
        bearer(SECRET_FILES['google/access-token']),
        'PUT',
      ),
    answers: [
      { statusCode: 200, body: '', status: 'succeeded' },
      { statusCode: 401, body: '<Error><Code>AuthenticationRequired</Code></Error>', status: 'pending' },
      { statusCode: 403, body: '<Error><Code>AccessDenied</Code></Error>', status: 'failed' },
    ],
  },
};

/** A one-off run, which is made as the page is run. */
export const PRESIGNED: Recipe = {
  origin: 'https://example-bucket.s3.eu-central-1.amazonaws.com',
  request: () =>
    json(
      '/year.json?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=EXAMPLE%2F20261120%2Feu-central-1%2Fs3%2Faws4_request' +
        '&X-Amz-Date=20261120T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=0123456789abcdef',
      '{"closed": true}',
      {},
      'PUT',
    ),
  answers: [
    { statusCode: 403, body: '<Error><Code>AccessDenied</Code></Error>', status: 'failed' },
    { statusCode: 200, body: '', status: 'succeeded' },
  ],
};
