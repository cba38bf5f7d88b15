/**
 * Loaded into each daemon of a campaign before its own code (`node --import`). It gives the process a loopback address
 * of its own to send from, so that the receiver knows who sent what, and a signal that blocks the event loop.
 */
import { Socket } from 'node:net';

const { CHAOS_SOURCE_ADDRESS: localAddress, CHAOS_RECEIVER_PORT: port, CHAOS_BLOCK_MS: blockMs } = process.env;

type Connect = (this: Socket, ...args: unknown[]) => Socket;
// oxlint-disable-next-line typescript/unbound-method -- called with its `this` below
const connect = Socket.prototype.connect as Connect;

Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
  const [to] = args;
  if (isToReceiver(to)) return connect.call(this, { ...to, localAddress });
  return connect.apply(this, args);
};

/** The target's connector names the port in an object. */
function isToReceiver(to: unknown): to is object {
  return typeof to === 'object' && to !== null && 'port' in to && to.port === Number(port);
}

process.on('SIGUSR2', () => {
  const end = performance.now() + Number(blockMs);
  while (performance.now() < end) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
});
