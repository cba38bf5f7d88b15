/** By request: the hash of the token that its cookie stands for. */
const tokenHashes = new WeakMap<object, Buffer>();

export function noteSession(request: object, tokenHash: Buffer): void {
  tokenHashes.set(request, tokenHash);
}

export function tokenHashOfSession(request: object): Buffer | undefined {
  return tokenHashes.get(request);
}
