// What the package `firelock-client/receiver` is for those who import it.
export type { Callback, Job, ReceiverOptions, Work } from './options.ts';
export type { HandedRun } from './handed-run.ts';
export { type Receiver, createReceiver } from './receiver.ts';
export { Later, Refused } from './reply.ts';
export {
  type HeaderReader,
  SignatureError,
  type SignatureOptions,
  createVerifier,
  verifySignature,
} from './signature.ts';
export { type Reply, type RunStore, type Verdict, memoryStore } from './store.ts';
