export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * `${NAME}` becomes the value of the variable, and `$${NAME}` the text `${NAME}`. Variables that are not set, or are
 * empty, are in `missing`: an empty secret is nearly always a mistake.
 */
export function substitute(text: string, variables: Variables): { text: string; missing: string[] } {
  const missing: string[] = [];
  const replaced = text.replace(/\$(\$?)\{([A-Za-z_]\w*)\}/g, (_, escaped: string, name: string) => {
    if (escaped !== '') return `\${${name}}`;
    const value = variables[name] ?? '';
    if (value !== '') return value;
    missing.push(name);
    // A value with which no other fault arises.
    return name;
  });
  return { text: replaced, missing };
}

/** Whether a place of a schedule holds a secret: a header's value, or a signing secret. Variables are replaced nowhere else. */
export function isSecret(path: readonly string[]): boolean {
  const [target, ...below] = path;
  if (target !== 'target') return false;
  const [name] = below;
  if (name === 'secret') return true;
  const call = name === 'lookup' || name === 'cancel' ? below.slice(1) : below;
  return call[0] === 'headers' && call.length === 2;
}
