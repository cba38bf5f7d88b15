/** No address was found for a name, so nothing was sent. */
export class NameNotResolved extends Error {
  /** As getaddrinfo has it: there is none, or no source could say. */
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';

  constructor(code: NameNotResolved['code'], message: string) {
    super(message);
    this.code = code;
  }
}

export function hasNoAddress(name: string): NameNotResolved {
  return new NameNotResolved('ENOTFOUND', `${name} has no address`);
}
