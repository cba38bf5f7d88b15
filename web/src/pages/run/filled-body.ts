import type { AnsweredBodyTemplate, WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { compileBody, renderBody } from '../../../../src/core/http/body-template.ts';
import { textOf } from '../../api/json.ts';

/**
 * The text that the last attempt of the run sent, or that its first one will send. Null: the run alone does not say it,
 * since it tells of what it follows or waited for, or is longer than is sent.
 */
export function filledBody(run: WholeRun, body: AnsweredBodyTemplate): string | null {
  const isAlone = run.trigger !== 'after' && run.dependsOn.length === 0;
  if (!isAlone && /\{\{(?:dependencies|parent\/)/.test(body.template)) return null;
  const secrets = Object.fromEntries(Object.keys(body.secrets ?? {}).map((name) => [name, '***']));
  const compiled = compileBody({ ...body, secrets });
  if ('fault' in compiled) return null;
  const payload = textOf(run.payload);
  try {
    return renderBody(compiled, {
      runId: run.id,
      runName: run.name,
      scheduleId: run.scheduleId,
      scheduledFor: Date.parse(run.scheduledFor),
      trigger: run.trigger,
      attempt: attemptOf(run),
      payload,
      dependencies: [],
      parent: null,
    });
  } catch {
    return null;
  }
}

/** Which attempt that is. */
export function attemptOf({ attempts }: WholeRun): number {
  return Math.max(attempts, 1);
}
