/** An operation does not do what it was asked for: nothing was written. What it says, and its status, are the answer of the API. */
export class OperationRefused extends Error {
  override readonly name = 'OperationRefused';
  readonly status: 404 | 409 | 422;
  /** What of the request is at fault, by JSON pointers; none: the message says it. */
  readonly faults: readonly { path: string; message: string }[];

  constructor(status: OperationRefused['status'], message: string, faults: OperationRefused['faults'] = []) {
    super(message);
    this.status = status;
    this.faults = faults;
  }
}

export function noSchedule(id: string): OperationRefused {
  return new OperationRefused(404, `there is no schedule ${id}`);
}

export function hasNoTimesOfItsOwn(id: string): OperationRefused {
  return new OperationRefused(
    409,
    `schedule ${id} has no fire times of its own: it fires when runs of other schedules end; see /api/v1/schedules/${id}/runs`,
  );
}

/** One field of the request is not possible. */
export function impossible(path: string, message: string): OperationRefused {
  return new OperationRefused(422, `${path} ${message}`, [{ path, message }]);
}
