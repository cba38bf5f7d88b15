/** The right of an instance to make one attempt of a run. It guards every write after the claim. */
export interface Claim {
  runId: string;
  instanceId: string;
  /** The number of the attempt that the claim is for. */
  attempt: number;
}
