import { keptText } from '../../core/runs/attempts/kept-text.ts';
import {
  type ActionResult,
  cancelRun,
  completeRun,
  heartbeatRun,
  retryRun,
} from '../../operations/runs/act-on-runs.ts';
import { failForNow, giveBackRun } from '../../operations/runs/give-back-runs.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import { Problem, noSuch } from '../http/problem.ts';
import { answerRun } from './answers.ts';
import { TAGS, BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { runIdParams, whole, workerIdText, ALWAYS } from '../http/common-schemas.ts';
import { run } from './schemas.ts';
import { z } from 'zod';
import { NOT_GIVEN, where } from '../document/kinds.ts';

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
  .meta({
    description:
      'The worker that claimed it: a run that a worker has claimed answers 409 without it, and with that of another one. Null: it is ' +
      'no run of a worker.',
  });

/** The body has no fields. */
const noInput = z.strictObject({}).optional();

const retryInput = z
  .strictObject({
    dependents: z
      .boolean()
      .default(false)
      .meta({
        description:
          'Also the runs that failed for want of it, down the graph, unless another of their dependencies has still failed. They are ' +
          'opened again right after the answer, step by step, however many there are; an instance that dies leaves none of them out.',
      }),
  })
  .prefault({})
  .meta({ id: 'RunRetry', description: 'What is opened again.' });

const completionInput = z
  .strictObject({
    status: z
      .enum(['succeeded', 'failed'])
      .meta({ description: '`failed` is final, unless `retry` is true: it is not tried again.' }),
    retry: z
      .boolean()
      .default(false)
      .meta({
        description:
          'With `failed`: it failed for now. It counts as a failure, and is tried again as `retry` of its schedule says; an at-most-once ' +
          'run ends as `failed` all the same.',
      }),
    result: z
      .unknown()
      .optional()
      .meta({
        description:
          'Kept as the `result.body` of the run: a string as it is, anything else as its JSON; cut at 4 KiB. `expect.result` judges up to ' +
          '64 KiB of it, and the last line of a string that is no JSON.',
      }),
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

const shared = {
  tags: [TAGS.runs],
  params: runIdParams,
  response: { 200: json('The run', run), ...problems(...BODY_PROBLEMS, 404, 409) },
};

export function addRunActionRoutes(api: Api, deps: ApiDeps): void {
  addCancelRoute(api, deps);
  addRetryRoute(api, deps);
  addCompleteRoute(api, deps);
  addHeartbeatRoute(api, deps);
  addReleaseRoute(api, deps);
}

function addCancelRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs/:id/cancel',
    {
      config: { role: 'operator', scope: 'run', pace: 'prompt', audits: ['run.cancel'] },
      schema: {
        ...shared,
        'x-body-optional': true,
        operationId: 'cancelRun',
        summary: 'Cancel a run that has not ended',
        description:
          'In `waiting`, `pending` and `running`; one that is cancelled already is answered as it is. A request that is under ' +
          'way is not called back; of a running run the `cancel` of its target is called, once and best effort.',
        body: noInput,
      },
    },
    ({ params: { id }, caller }) => act(id, () => cancelRun(audited(deps, { caller }), id)),
  );
}

function addRetryRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs/:id/retry',
    {
      config: { role: 'operator', scope: 'run', pace: 'prompt', audits: ['run.retry'] },
      schema: {
        ...shared,
        'x-body-optional': true,
        operationId: 'retryRun',
        summary: 'Have a run that ended otherwise than well done again, under its id',
        description:
          'In `failed`, `unknown`, `abandoned`, `skipped` and `cancelled`. Its failures and recoveries start at 0 again; a run of a ' +
          'schedule goes by the current version of that.',
        body: retryInput,
      },
    },
    ({ params: { id }, body, caller }) => act(id, () => retryRun(audited(deps, { caller }), id, body)),
  );
}

function addCompleteRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs/:id/complete',
    {
      config: { role: 'worker', scope: 'run', pace: 'prompt', audits: ['run.complete'] },
      schema: {
        ...shared,
        operationId: 'completeRun',
        summary: 'Say how a run ended: for pull workers, and targets whose `completion` is `callback`',
        description:
          'In `running`, in `pending` once an attempt has started, in `unknown`, and again with the same outcome in `succeeded` ' +
          'and `failed`.',
        body: completionInput,
      },
    },
    ({ params: { id }, body: { status, retry, error, attempt, workerId }, json: sent, caller }) => {
      const whole = resultText(sent?.payloads.get('/result'));
      const result = whole === null ? null : keptText(Buffer.from(whole));
      const reason = error === null ? null : keptText(Buffer.from(error));
      const report = { status, result, whole, error: reason, attempt, workerId };
      const complete = retry ? failForNow : completeRun;
      return act(id, () => complete(audited(deps, { caller }), id, report));
    },
  );
}

function addHeartbeatRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs/:id/heartbeat',
    {
      config: { role: 'worker', scope: 'run', pace: 'prompt', audits: [] },
      schema: {
        ...shared,
        'x-body-optional': true,
        operationId: 'heartbeatRun',
        summary: 'Say that a run is still being worked on',
        description:
          'In `running`, where it moves `leaseUntil` or `completionDueAt` on from now by as much as they were given at first, and ' +
          'in `pending` once an attempt has started.',
        body: heartbeatInput,
      },
    },
    ({ params: { id }, body: { attempt, workerId, progress }, caller }) =>
      act(id, () => heartbeatRun(audited(deps, { caller }), id, { attempt, workerId, progress })),
  );
}

function addReleaseRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs/:id/release',
    {
      config: { role: 'worker', scope: 'run', pace: 'prompt', audits: ['run.release'] },
      schema: {
        ...shared,
        'x-body-optional': true,
        operationId: 'releaseRun',
        summary: 'Give back a run that a worker has claimed and not begun',
        description:
          'It is `pending` at once, without a failure; its `attempts` stay. Again the same answer. Once it has a log or progress, 409.',
        body: releaseInput,
      },
    },
    ({ params: { id }, body: { attempt, workerId }, caller }) =>
      act(id, () => giveBackRun(audited(deps, { caller }), id, { attempt, workerId })),
  );
}

async function act(id: string, action: () => Promise<ActionResult>) {
  const acted = await action();
  if (acted.kind === 'noSuchRun') throw noSuch(`run ${id}`);
  if (acted.kind === 'notPossible') throw new Problem(409, acted.message, { run: acted.summary });
  return answerRun(acted.run);
}

/** A string as it is, anything else as its JSON; null: no text. */
function resultText(source: string | undefined): string | null {
  if (source === undefined || source === 'null') return null;
  return source.startsWith('"') ? String(JSON.parse(source)) : source;
}
