/** Stands for bytes that are not percent-encoded UTF-8: no text can contain it, so the validation names the parameter. */
const UNREADABLE = '\ud800';

/**
 * Reads a query as forms are encoded: `+` is a space; a name that occurs more than once gets an array. Never throws:
 * the router calls it where nothing could catch the error.
 */
export function parseQueryString(text: string): Record<string, string | string[]> {
  const parameters = Object.create(null) as Record<string, string | string[]>;
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    const given = parameters[name];
    if (given === undefined) parameters[name] = value;
    else if (Array.isArray(given)) given.push(value);
    else parameters[name] = [given, value];
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return UNREADABLE;
  }
}
