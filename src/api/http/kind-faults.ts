interface Issue {
  code?: string;
  input?: unknown;
}

/** The `error` of a strict object: `what` has no such field. */
export function notAFieldOf(what: string) {
  return ({ code }: Issue): string | undefined =>
    code === 'unrecognized_keys' ? `is not a field of ${what}` : undefined;
}

/** The `error` of a union of objects that `type` tells apart. */
export function typeFaultOf(types: readonly string[]) {
  const known = types.map((type) => `"${type}"`).join(' or ');
  return ({ code, input }: Issue): string | undefined => {
    if (code !== 'invalid_union') return undefined;
    const isThere = typeof input === 'object' && input !== null && 'type' in input;
    return isThere ? `must be ${known}` : `is required: ${known}`;
  };
}
