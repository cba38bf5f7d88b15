import { useState } from 'preact/hooks';
import { ApiProblem, get } from '../api/http.ts';
import type { Caller } from '../../../client/src/generated/types.gen.ts';
import { Field } from '../parts/forms/field.tsx';
import { keepToken, me, mustLogIn } from '../state/session.ts';

/** Null: the daemon knows it, and the caller is logged in. */
async function faultOf(typed: string): Promise<string | null> {
  // What is no token cannot be sent, either.
  if (!/^[\x21-\x7e]+$/.test(typed)) return 'A token consists of letters, digits and underscores.';
  keepToken(typed);
  try {
    me.value = await get<Caller>('/me');
    mustLogIn.value = false;
    return null;
  } catch (error) {
    keepToken(null);
    if (error instanceof ApiProblem && error.status === 401)
      return 'firelock does not know this token, or it has ended.';
    return error instanceof Error ? error.message : 'This did not work.';
  }
}

/** Takes a token, and asks the daemon whose it is. It is kept in this tab alone. */
export function LogIn() {
  const [typed, setTyped] = useState('');
  const [fault, setFault] = useState('');
  const [isAsking, setAsking] = useState(false);
  const logIn = async (): Promise<void> => {
    setAsking(true);
    setFault((await faultOf(typed.trim())) ?? '');
    setAsking(false);
  };
  return (
    <main id="main" class="log-in" tabIndex={-1}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void logIn();
        }}
      >
        <h1>Log in to firelock</h1>
        <Field
          label="Token"
          path="/token"
          faults={fault === '' ? [] : [{ path: '/token', message: fault }]}
          hint="firelock token create NAME --role viewer makes one. It is kept until you close this tab."
        >
          {(props) => (
            <input
              {...props}
              type="password"
              autocomplete="off"
              spellcheck={false}
              required
              autofocus
              value={typed}
              onInput={({ currentTarget }) => {
                setTyped(currentTarget.value);
              }}
            />
          )}
        </Field>
        <button type="submit" class="main" disabled={isAsking || typed.trim() === ''}>
          Log in
        </button>
      </form>
    </main>
  );
}
