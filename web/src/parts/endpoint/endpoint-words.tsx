import type { AnsweredHttpTarget } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { carriedBody } from '../../../../src/core/http/request-body.ts';
import { stringifyJson } from '../../api/json.ts';

/** What a request of this target carries, in words. */
export function bodyWords({ method, body }: AnsweredHttpTarget): string {
  const carried = carriedBody(method, body);
  if (carried === 'none') return `none, as of each ${method}`;
  if (carried === 'envelope') return "firelock's own JSON about the run, with the payload";
  return carried === 'payload' ? 'the payload, byte for byte' : `a text of its own, ${carried.contentType}`;
}

/** What the answers of this target mean, where it has rules for that. */
export function Rules({ rules }: { rules: NonNullable<AnsweredHttpTarget['outcome']> }) {
  const { succeed, retry, fail, require: required, otherwise } = rules;
  const lists = [
    [succeed, 'a success'],
    [retry, 'try again'],
    [fail, 'failed'],
  ] as const;
  return (
    <ul class="rules" aria-label="What its answers mean">
      {lists.map(
        ([statuses, meaning]) =>
          statuses.length > 0 && (
            <li key={meaning}>
              <code class="user">{statuses.join(', ')}</code>: {meaning}
            </li>
          ),
      )}
      {required !== null && (
        <li>
          a success must {'contains' in required ? 'contain ' : 'have '}
          <code class="user">{'contains' in required ? required.contains : stringifyJson(required.equals)}</code>
          {'pointer' in required && (
            <>
              {' '}
              {required.pointer === '' ? 'as its JSON' : 'at '}
              <code class="user">{required.pointer}</code>
            </>
          )}
          ; without it: {OTHERWISE[otherwise ?? '']}
        </li>
      )}
    </ul>
  );
}

const OTHERWISE = { '': 'try again; under at most once, failed', retry: 'try again', fail: 'failed' };
