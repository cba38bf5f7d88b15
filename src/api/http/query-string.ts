/** What stands for a byte sequence that is not percent-encoded UTF-8: no text can hold it, so validation names it. */
const UNREADABLE = '\ud800';

/**
 * As forms are encoded: `+` is a space; a name given more than once has an array. Never throws: the router calls it
 * where nothing could catch.
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
