import type {
  AnsweredBodyTemplate,
  AnsweredHttpTarget,
  WholeRun,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import { textOf } from '../../api/json.ts';
import { Copy } from '../../parts/copy.tsx';
import { Rules, bodyWords } from '../../parts/endpoint/endpoint-words.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Below } from '../../parts/links.tsx';
import { attemptOf, filledBody } from './filled-body.ts';

/** Where the run goes, and what goes with it. */
export function Request({ run }: { run: WholeRun }) {
  const { target, payload, queue, notifierId } = run;
  return (
    <section class="card stack">
      <div class="bar end">
        <h2 class="first">Request</h2>
        <Copy text={() => textOf(payload)}>Copy the payload</Copy>
      </div>
      {target?.type === 'http' && (
        <>
          <p>
            <code class="user">
              {target.method} <Below connection={target.connection} />
              {target.url}
            </code>
          </p>
          <p>
            Body: <span class="user">{bodyWords(sentTarget(run, target))}</span>
          </p>
          {typeof target.body !== 'string' && <Text run={run} body={target.body} />}
        </>
      )}
      {queue !== null && (
        <p>
          Pulled by workers from the queue <code class="user">{queue}</code>
        </p>
      )}
      {target === null && (
        <p class="quiet">{notifierId === null ? 'Its target cannot be read.' : 'Where it goes, its notifier says.'}</p>
      )}
      {textOf(payload) === 'null' ? (
        <p class="quiet">It has no payload.</p>
      ) : (
        <>
          <p class="quiet">The payload of the run:</p>
          <JsonView label="Payload" value={payload} />
        </>
      )}
    </section>
  );
}

/** Of a message, the envelope is its payload. */
function sentTarget({ trigger }: WholeRun, target: AnsweredHttpTarget): AnsweredHttpTarget {
  return trigger === 'notify' && target.body === 'envelope' ? { ...target, body: 'payload' } : target;
}

/** As it is filled in, where the run alone says that. */
function Text({ run, body }: { run: WholeRun; body: AnsweredBodyTemplate }) {
  const filled = filledBody(run, body);
  return (
    <>
      <p class="quiet">
        {filled === null
          ? 'Its text, in which what is in braces is filled in at each attempt:'
          : `As in attempt ${attemptOf(run)}:`}
      </p>
      <pre class="user" aria-label="Body of the request" tabIndex={0}>
        {filled ?? body.template}
      </pre>
    </>
  );
}

const KINDS = {
  timeout: 'No answer came in time',
  network: 'The target could not be reached',
  blocked: 'firelock may not call this address',
  expired: 'Its completion was not reported in time',
  dependency: 'A run that it depends on did not succeed',
  reported: 'The target reported that it failed',
  body: 'Its body is too long to be sent',
};

/** What came back, or why nothing did. */
export function Answer({ run: { result, error, executionId, target } }: { run: WholeRun }) {
  const rules = target?.type === 'http' ? target.outcome : null;
  return (
    <section class="card stack">
      <h2>Answer</h2>
      {error !== null && (
        <p class="refusal">
          {error.kind !== 'http' && `${KINDS[error.kind]}: `}
          <span class="user">{error.message}</span>
        </p>
      )}
      {executionId !== null && (
        <p>
          The target calls it <code class="user">{executionId}</code>
        </p>
      )}
      {result === null ? (
        error === null && <p class="quiet">There is none yet.</p>
      ) : (
        <>
          <p>{result.statusCode === null ? 'Reported with the end:' : `Status ${result.statusCode}:`}</p>
          {result.body === '' ? (
            <p class="quiet">The body is empty.</p>
          ) : (
            <JsonView label="Body of the answer" value={result.body} />
          )}
        </>
      )}
      {rules !== null && (
        <>
          <p class="quiet">Its target says what answers mean:</p>
          <Rules rules={rules} />
        </>
      )}
    </section>
  );
}
