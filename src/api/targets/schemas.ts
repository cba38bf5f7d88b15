import { z } from 'zod';
import {
  MASK,
  addressFault,
  answeredCall,
  answeredSecret,
  headers,
  method,
  patchedCall,
  patchedSecret,
  patchedUrl,
  secret,
  url,
} from './http-call-schemas.ts';
import {
  answeredBody,
  answeredOutcome,
  body,
  bodyFaults,
  outcome,
  patchedBody,
  patchedOutcome,
} from './body-and-outcome.ts';
import { QUEUE_NAME } from '../../core/runs/run-lane.ts';
import { ALWAYS, connectionIdText, notAFieldOf, typeFaultOf } from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';

const TYPES = ['http', 'pull'] as const;

export const queue = z
  .string()
  .regex(QUEUE_NAME, {
    error: 'must be 1 to 128 letters (A-Z, a-z), digits, dots, dashes or underscores',
  })
  .meta({ description: 'Workers claim from it by `/queues/{queue}/claim`.', example: 'reports' });

const CONNECTION = {
  description: 'The connection below whose URL the calls of the target go, and that logs in.',
  example: 'github',
};
const connection = connectionIdText.meta(CONNECTION);

const lookupInput = z.strictObject({ url, method: method.default('GET'), headers: headers.default({}) }).meta({
  id: 'Lookup',
  description:
    'Asked, without a body, whether a run arrived, before an attempt of unknown outcome is repeated or given up: ' +
    '2xx = it did, 404 = it did not, anything else = still unknown. A JSON `status` of `running`, `succeeded` or `failed` ' +
    'in a 2xx is taken over where `completion` is `callback`.',
});

const cancelInput = z.strictObject({ url, method: method.default('POST'), headers: headers.default({}) }).meta({
  id: 'Cancel',
  description: 'Called once, best effort and without a body, when a running run is cancelled or replaced.',
});

export const httpInput = z
  .strictObject(
    {
      type: z.literal('http'),
      connection: connection.nullable().default(null),
      url,
      method: method.default('POST'),
      headers: headers.default({}),
      body: body.default('envelope'),
      outcome: outcome.default(null),
      lookup: lookupInput.nullable().default(null),
      cancel: cancelInput.nullable().default(null),
      secret: secret.default(null),
    },
    notAFieldOf('a target of type "http"'),
  )
  .superRefine((target, context) => {
    for (const { path, message } of [...addressFaults(target), ...bodyFaults(target)])
      context.addIssue({ code: 'custom', path, message });
  }, ALWAYS)
  .meta({ id: 'HttpTarget', description: 'Sends an HTTP request.' });

const pullInput = z
  .strictObject({ type: z.literal('pull'), queue }, notAFieldOf('a target of type "pull"'))
  .meta({ id: 'PullTarget', description: 'Sends nothing: the run waits for a worker to claim it.' });

export const targetInput = z
  .discriminatedUnion('type', [httpInput, pullInput], {
    error: typeFaultOf(TYPES),
  })
  .meta({ id: 'Target', description: 'What a run is handed to, by `type`.' });
export type TargetInput = z.output<typeof targetInput>;

/** The fields that each type needs. */
const REQUIRED: ReadonlySet<string> = new Set(['url', 'queue']);
const patchedHttpCall = z.strictObject({ url: patchedUrl.optional(), ...patchedCall });
const PATCHED = {
  http: {
    connection: connection.nullish(),
    url: patchedUrl.nullish(),
    ...patchedCall,
    body: patchedBody,
    outcome: patchedOutcome,
    lookup: patchedHttpCall.nullish(),
    cancel: patchedHttpCall.nullish(),
    secret: patchedSecret,
  },
  pull: { queue: queue.nullish() },
};

/** Another `type` replaces the whole target, so that a caller need not remove the old fields by name. */
export const targetPatch = z
  .strictObject({ type: z.enum(TYPES).optional(), ...PATCHED.http, ...PATCHED.pull })
  .superRefine((patch, context) => {
    const refuse = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
    const named = TYPES.find((type) => type === patch.type);
    for (const [name, value] of Object.entries<unknown>(patch)) {
      const type = TYPES.find((one) => Object.hasOwn(PATCHED[one], name));
      if (type === undefined) continue;
      const isForeign = named !== undefined && named !== type;
      if (isForeign && value !== null) refuse(name, `is not a field of a target of type "${named}"`);
      else if (!isForeign && value === null && REQUIRED.has(name)) refuse(name, 'must be a string');
    }
  }, ALWAYS);

const answeredHttpCall = (id: string, what: string) =>
  z
    .object(answeredCall)
    .meta({ id, description: `${what}; each header value is "${MASK}".` })
    .nullable();

export const answeredHttpTarget = z
  .object({
    type: z.literal('http'),
    // Without the pattern: in a choice, the Go of openapi-generator takes none on a text that may be null.
    connection: z.string().nullable().meta(CONNECTION),
    ...answeredCall,
    body: answeredBody,
    outcome: answeredOutcome,
    secret: answeredSecret,
    lookup: answeredHttpCall('AnsweredLookup', 'A lookup'),
    cancel: answeredHttpCall('AnsweredCancel', 'A cancel call'),
  })
  .meta({ id: 'AnsweredHttpTarget', description: `Each header value, and the secret, is "${MASK}".` });

export const answeredTarget = z
  .discriminatedUnion('type', [
    answeredHttpTarget,
    z.object({ type: z.literal('pull'), queue: z.string() }).meta({ id: 'AnsweredPullTarget' }),
  ])
  .meta({ id: 'AnsweredTarget', description: `A target; each header value, and the secret, is "${MASK}".` });

/** As a target was sent: its fields may be of any type. */
function addressFaults(target: Record<string, unknown>): { path: string[]; message: string }[] {
  const named = typeof target['connection'] === 'string' ? target['connection'] : null;
  const calls = [[], ['lookup'], ['cancel']].map((path) => ({
    path,
    call: path[0] === undefined ? target : target[path[0]],
  }));
  return calls.flatMap(({ path, call }) => {
    const address = isObject(call) ? call['url'] : undefined;
    const message = typeof address === 'string' ? addressFault(named, address) : null;
    return message === null ? [] : [{ path: [...path, 'url'], message }];
  });
}
