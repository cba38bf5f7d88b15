import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A file that is served as it is, plain and compressed. */
export interface PackedFile {
  type: string;
  plain: Buffer;
  zipped: Buffer;
  etag: string;
}

const zip = promisify(gzip);

export async function pack(type: string, plain: Buffer): Promise<PackedFile> {
  return {
    type,
    plain,
    zipped: await zip(plain, { level: constants.Z_BEST_COMPRESSION }),
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
  };
}

export function sendPacked(request: FastifyRequest, reply: FastifyReply, file: PackedFile): FastifyReply {
  void reply.headers({ ETag: file.etag, Vary: 'Accept-Encoding', 'X-Content-Type-Options': 'nosniff' });
  if (reply.statusCode === 200 && request.headers['if-none-match'] === file.etag) return reply.code(304).send();
  void reply.type(file.type);
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(file.plain);
  return reply.header('Content-Encoding', 'gzip').send(file.zipped);
}
