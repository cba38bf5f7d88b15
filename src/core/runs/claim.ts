/** That an instance may make one attempt of a run. Every write after the claim is guarded by it. */
export interface Claim {
  runId: string;
  instanceId: string;
  /** The number of the attempt that the claim is for. */
  attempt: number;
}
