import type { Socket } from 'node:net';
import type { EgressProxy } from '../config/egress-proxy.ts';
import { AddressBlocked } from './guard/address-guard.ts';

/** The head of a proxy's answer is small; a larger one comes from no proxy. */
const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_END = '\r\n\r\n';
const FORBIDDEN = 403;

/**
 * Asks the proxy at the other end of this connected socket for a tunnel to `host:port` (RFC 9110, 9.3.6), and calls
 * back once it exists. Without a tunnel, it destroys the socket with the reason: AddressBlocked if the proxy forbids
 * the address.
 */
export function openTunnel(
  socket: Socket,
  { host, port, proxy }: { host: string; port: number; proxy: EgressProxy },
  onOpen: () => void,
): void {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  let head = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(HEAD_END);
    if (end === -1 && head.length <= MAX_HEAD_BYTES) return;
    socket.off('data', onData).off('end', onEnd).pause();
    const refusal =
      end === -1 ? new Error('the egress proxy did not answer in HTTP') : refusalOf(head, authority);
    if (refusal !== null) {
      socket.destroy(refusal);
      return;
    }
    const rest = head.subarray(end + HEAD_END.length);
    if (rest.length > 0) socket.unshift(rest);
    onOpen();
  };
  const onEnd = () => socket.destroy(new Error('the egress proxy closed the connection'));
  socket.on('data', onData).on('end', onEnd);
  const authorization = proxy.authorization === null ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`);
}

/** Null: the tunnel is open. */
function refusalOf(head: Buffer, authority: string): Error | null {
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1'))?.[1]);
  if (status >= 200 && status < 300) return null;
  if (status === FORBIDDEN) return new AddressBlocked(authority, 'the egress proxy forbids it');
  const answered = Number.isNaN(status) ? 'did not answer in HTTP' : `answered ${status}`;
  return new Error(`the egress proxy ${answered}`);
}
