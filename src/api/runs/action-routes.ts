import { keptText } from '../../core/runs/attempts/outcome.ts';
import {
  type ActionResult,
  cancelRun,
  completeRun,
  heartbeatRun,
  retryRun,
  type RunActionDeps,
} from '../../operations/runs/act-on-runs.ts';
import { failForNow, giveBackRun } from '../../operations/runs/worker-reports.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/entries.ts';
import { noSuch, Problem } from '../http/problem.ts';
import { answerRun, run } from './answers.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { ALWAYS, runIdParams, whole, workerIdText } from '../http/common-schemas.ts';
import { z } from 'zod';
import { NOT_GIVEN, where } from '../document/kinds.ts';
import type { RoleNeeded } from '../../core/access/roles.ts';
import type { AuditAction } from '../../core/audit.ts';
import type { JsonBody } from '../http/json/json-body.ts';

const attempt = whole(1, 2 ** 31 - 1)
  .nullable()
  .default(null)
  .meta({
    description:
      'The `attempt` that was handed over: where another one has started since, it is 409. Null: whichever is current.',
    example: 1,
  });

const workerId = workerIdText
  .nullable()
  .default(null)
  .describe(
    'The worker that claimed it: a run that a worker has claimed answers 409 without it, and with that of another one. Null: it is ' +
      'no run of a worker.',
  );

/** The body has no fields. */
const noInput = z.strictObject({}).optional();

const retryInput = z
  .strictObject({
    dependents: z
      .boolean()
      .default(false)
      .describe(
        'Also the runs that failed for want of it, down the graph, unless another of their dependencies has still failed. They are ' +
          'opened again right after the answer, step by step, however many there are; an instance that dies leaves none of them out.',
      ),
  })
  .prefault({})
  .meta({ id: 'RunRetry', description: 'What is opened again.' });

const completionInput = z
  .strictObject({
    status: z
      .enum(['succeeded', 'failed'])
      .describe('`failed` is final, unless `retry` is true: it is not tried again.'),
    retry: z
      .boolean()
      .default(false)
      .describe(
        'With `failed`: it failed for now. It counts as a failure, and is tried again as `retry` of its schedule says; an at-most-once ' +
          'run ends as `failed` all the same.',
      ),
    result: z
      .unknown()
      .optional()
      .describe(
        'Kept as the `result.body` of the run: a string as it is, anything else as its JSON; cut at 4 KiB. `expect.result` judges up to ' +
          '64 KiB of it, and the last line of a string that is no JSON.',
      ),
    error: z.string().nullable().default(null).meta({
      description: 'Why it failed; only with `failed`. Kept as the `error.message` of the run, cut at 4 KiB.',
    }),
    attempt,
    workerId,
  })
  .superRefine(({ status, error, retry }, context) => {
    const misplaced = [typeof error === 'string' && 'error', retry && 'retry'];
    for (const path of status === 'succeeded' ? misplaced.filter((one) => one !== false) : [])
      context.addIssue({ code: 'custom', path: [path], message: 'is allowed only with the status failed' });
  }, ALWAYS)
  .meta({
    id: 'Completion',
    description: 'How a run ended.',
    ...where('status', [
      { is: 'succeeded', properties: { error: NOT_GIVEN, retry: { const: false } } },
      { is: 'failed' },
    ]),
  });

const heartbeatInput = z
  .strictObject({
    attempt,
    workerId,
    progress: z.number().min(0).max(1).nullable().default(null).meta({
      description: 'How much of it is done, 0 … 1. Null: as it was.',
      example: 0.25,
    }),
  })
  .prefault({})
  .meta({ id: 'Heartbeat', description: 'It is still being worked on.' });

const releaseInput = z
  .strictObject({ attempt, workerId })
  .prefault({})
  .meta({ id: 'Release', description: 'Its worker has claimed it, and will not begin it.' });

interface ActionRoute<Input extends z.ZodType> {
  /** What is done, in the path and in the audit; `Run` behind it is the id of the operation. */
  word: 'cancel' | 'retry' | 'complete' | 'heartbeat' | 'release';
  role: RoleNeeded;
  audits: readonly AuditAction[];
  summary: string;
  description: string;
  input: Input;
  isBodyNeeded?: boolean;
  act: (deps: RunActionDeps, id: string, body: z.output<Input>, sent: JsonBody | null) => Promise<ActionResult>;
}

export function addRunActionRoutes(api: Api, deps: ApiDeps): void {
  addActionRoute(api, deps, {
    word: 'cancel',
    role: 'operator',
    audits: ['run.cancel'],
    input: noInput,
    summary: 'Cancel a run that has not ended',
    description:
      'In `waiting`, `pending` and `running`; one that is cancelled already is answered as it is. A request that is under ' +
      'way is not called back; of a running run the `cancel` of its target is called, once and best effort.',
    act: cancelRun,
  });
  addActionRoute(api, deps, {
    word: 'retry',
    role: 'operator',
    audits: ['run.retry'],
    input: retryInput,
    summary: 'Have a run that ended otherwise than well done again, under its id',
    description:
      'In `failed`, `unknown`, `abandoned`, `skipped` and `cancelled`. Its failures and recoveries start at 0 again; a run of a ' +
      'schedule goes by the current version of that.',
    act: retryRun,
  });
  addReportRoutes(api, deps);
}

/** What workers say, and targets whose `completion` is `callback`. */
function addReportRoutes(api: Api, deps: ApiDeps): void {
  addActionRoute(api, deps, {
    word: 'complete',
    role: 'worker',
    audits: ['run.complete'],
    input: completionInput,
    isBodyNeeded: true,
    summary: 'Say how a run ended: for pull workers, and targets whose `completion` is `callback`',
    description:
      'In `running`, in `pending` once an attempt has started, in `unknown`, and again with the same outcome in `succeeded` ' +
      'and `failed`.',
    act: complete,
  });
  addActionRoute(api, deps, {
    word: 'heartbeat',
    role: 'worker',
    audits: [],
    input: heartbeatInput,
    summary: 'Say that a run is still being worked on',
    description:
      'In `running`, where it moves `leaseUntil` or `completionDueAt` on from now by as much as they were given at first, and ' +
      'in `pending` once an attempt has started.',
    act: heartbeatRun,
  });
  addActionRoute(api, deps, {
    word: 'release',
    role: 'worker',
    audits: ['run.release'],
    input: releaseInput,
    summary: 'Give back a run that a worker has claimed and not begun',
    description:
      'It is `pending` at once, without a failure; its `attempts` stay. Again the same answer. Once it has a log or progress, 409.',
    act: giveBackRun,
  });
}

function addActionRoute<Input extends z.ZodType>(
  api: Api,
  deps: ApiDeps,
  { word, role, audits, input, isBodyNeeded = false, act, ...said }: ActionRoute<Input>,
): void {
  addRoute(api, {
    route: `POST /runs/:id/${word}`,
    operationId: `${word}Run`,
    config: { role, scope: 'run', pace: 'prompt', audits },
    ...(isBodyNeeded ? {} : { 'x-body-optional': true }),
    ...said,
    tags: [TAGS.runs],
    params: runIdParams,
    body: input,
    answers: { 200: json('The run', run) },
    refusals: [404, 409],
    handler: async ({ params: { id }, body, json: sent, caller }) => {
      const acted = await act(audited(deps, { caller }), id, body as z.output<Input>, sent);
      if (acted.kind === 'noSuchRun') throw noSuch(`run ${id}`);
      if (acted.kind === 'notPossible') throw new Problem(409, acted.message, { run: acted.summary });
      return answerRun(acted.run);
    },
  });
}

function complete(
  deps: RunActionDeps,
  id: string,
  { status, retry, error, attempt, workerId }: z.output<typeof completionInput>,
  sent: JsonBody | null,
): Promise<ActionResult> {
  const whole = resultText(sent?.payloads.get('/result'));
  const result = whole === null ? null : keptText(Buffer.from(whole));
  const reason = error === null ? null : keptText(Buffer.from(error));
  const report = { status, result, whole, error: reason, attempt, workerId };
  return (retry ? failForNow : completeRun)(deps, id, report);
}

/** A string as it is, anything else as its JSON; null: no text. */
function resultText(source: string | undefined): string | null {
  if (source === undefined || source === 'null') return null;
  return source.startsWith('"') ? String(JSON.parse(source)) : source;
}
