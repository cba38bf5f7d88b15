import { type FileVariables, fileVariable } from '../../core/secrets/file-variables.ts';
import type { Kind } from '../schedules-file.ts';

/** `${NAME}` becomes the value of the variable, and `$${NAME}` the text `${NAME}`. */
export function substitute(text: string, variables: FileVariables): { text: string; faults: string[] } {
  const faults: string[] = [];
  const replaced = text.replace(/\$(\$?)\{([A-Za-z_]\w*)\}/g, (_, escaped: string, name: string) => {
    if (escaped !== '') return `\${${name}}`;
    const found = fileVariable(name, variables);
    if ('value' in found) return found.value;
    faults.push(found.fault);
    // A value with which no other fault arises.
    return name;
  });
  return { text: replaced, faults };
}

/**
 * Whether a place of an entry holds a secret: a header's value, one of a body or a signing secret of a target, a header's value or a
 * credential of a connection, the routing key of a notifier. Variables are replaced nowhere else.
 */
export function isSecret(kind: Kind, path: readonly string[]): boolean {
  if (kind === 'notifiers')
    return (
      path[0] === 'channel' && (path.join('.') === 'channel.routingKey' || isSecretOfTarget(path.slice(1)))
    );
  return kind === 'connections' ? isCredential(path) : kind === 'schedules' && isSecretOfTarget(path);
}

function isCredential(path: readonly string[]): boolean {
  return path.length === 2 && (path[0] === 'headers' || CREDENTIALS.includes(path.join('.')));
}

function isSecretOfTarget([target, ...below]: readonly string[]): boolean {
  if (target !== 'target') return false;
  const [name] = below;
  if (name === 'secret') return true;
  if (name === 'body') return below[1] === 'secrets' && below.length === 3;
  const call = name === 'lookup' || name === 'cancel' ? below.slice(1) : below;
  return call[0] === 'headers' && call.length === 2;
}

const CREDENTIALS = ['auth.token', 'auth.password', 'auth.clientSecret', 'tls.key'];
