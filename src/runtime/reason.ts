/** The message of an error, with its cause: the driver's message is often one level down. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The query builder's own message is the whole statement; its cause says what is wrong.
  if (error.cause instanceof Error) return reasonOf(error.cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const first = error.message.split('\n')[0] ?? '';
  return first === '' || first.includes(code) ? first || code : `${code}: ${first}`;
}
