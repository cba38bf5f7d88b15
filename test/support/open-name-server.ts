import { createSocket } from 'node:dgram';
import { addressBytes } from '../../src/config/address-ranges.ts';

export interface Question {
  name: string;
  type: 'A' | 'AAAA';
}

/** Addresses of both types, of which the question's are sent; none: no such name, unless `exists`. Null: silence. */
export type Answer = {
  addresses?: string[];
  ttl?: number;
  rcode?: number;
  exists?: boolean;
  after?: Promise<unknown>;
} | null;

const A = 1;
const AAAA = 28;
const NO_SUCH_NAME = 3;

export interface NameServer {
  servers: string[];
  questions: Question[];
  close(): Promise<void>;
}

/** A name server on loopback that answers as told, and records the questions. */
export async function openNameServer(answer: (question: Question) => Answer): Promise<NameServer> {
  const socket = createSocket('udp4');
  const questions: Question[] = [];
  let isOpen = true;
  socket.on('message', (message, { port, address }) => {
    const { question, end } = readQuestion(message);
    questions.push(question);
    const said = answer(question);
    if (said === null) return;
    const reply = replyTo(message.subarray(0, end), question, said);
    void Promise.resolve(said.after).then(() => isOpen && socket.send(reply, port, address));
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    servers: [`127.0.0.1:${socket.address().port}`],
    questions,
    close: () => {
      isOpen = false;
      return new Promise((resolve) => socket.close(() => resolve()));
    },
  };
}

const HEADER_BYTES = 12;

function readQuestion(message: Buffer): { question: Question; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = message.readUInt16BE(at + 1) === AAAA ? 'AAAA' : 'A';
  return { question: { name: labels.join('.'), type }, end: at + 5 };
}

function replyTo(asked: Buffer, { type }: Question, said: Exclude<Answer, null>): Buffer {
  const { addresses = [], ttl = 60, exists = false } = said;
  const { rcode = addresses.length > 0 || exists ? 0 : NO_SUCH_NAME } = said;
  const records = addresses
    .map((address) => Buffer.from(addressBytes(address) ?? []))
    .filter(({ length }) => (length === 16) === (type === 'AAAA'))
    .map((data) => {
      const record = Buffer.alloc(12);
      record.writeUInt16BE(0xc000 + HEADER_BYTES, 0);
      record.writeUInt16BE(type === 'AAAA' ? AAAA : A, 2);
      record.writeUInt16BE(1, 4);
      record.writeUInt32BE(ttl, 6);
      record.writeUInt16BE(data.length, 10);
      return Buffer.concat([record, data]);
    });
  const reply = Buffer.concat([asked, ...records]);
  reply.writeUInt16BE(0x8180 + rcode, 2);
  reply.writeUInt16BE(1, 4);
  reply.writeUInt16BE(records.length, 6);
  reply.writeUInt32BE(0, 8);
  return reply;
}
