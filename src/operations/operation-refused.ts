/** An operation does not do what it was asked for: nothing was written. What it says, and its status, are the answer of the API. */
export class OperationRefused extends Error {
  override readonly name = 'OperationRefused';
  readonly status: 409 | 422;
  /** What of the request is at fault, by JSON pointers; none: the message says it. */
  readonly faults: readonly { path: string; message: string }[];

  constructor(status: 409 | 422, message: string, faults: OperationRefused['faults'] = []) {
    super(message);
    this.status = status;
    this.faults = faults;
  }
}
