import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/loopback.ts';
import { HUNG_AFTER_MS, until } from '../../test/support/until.ts';

/** As `npm publish` sends it, and as npm reads it but for the archives. */
interface Published {
  name: string;
  versions: Record<string, object>;
  _attachments: Record<string, { data: string }>;
}

export interface NpmRegistry {
  readonly url: string;
  close(): void;
}

/**
 * A registry of npm packages on loopback: for those that are published to it, as the usual one it takes no version twice. For all
 * others it sends npm on.
 */
export async function startNpmRegistry(upstream: string): Promise<NpmRegistry> {
  const documents = new Map<string, object>();
  const archives = new Map<string, Buffer>();
  const publish = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { _attachments: attached, ...document } = JSON.parse(Buffer.concat(chunks).toString()) as Published;
    if (documents.has(`/${document.name}`)) return void response.writeHead(409).end();
    documents.set(`/${document.name}`, document);
    for (const [file, { data }] of Object.entries(attached))
      archives.set(`/${document.name}/-/${file}`, Buffer.from(data, 'base64'));
    response.writeHead(201, JSON_TYPE).end('{"ok":true}');
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const document = documents.get(path);
    if (request.method === 'PUT') void publish(request, response);
    else if (document !== undefined) response.writeHead(200, JSON_TYPE).end(JSON.stringify(document));
    else if (archives.has(path)) response.end(archives.get(path));
    else response.writeHead(302, { location: upstream.replace(/\/$/, '') + path }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => void server.close(),
  };
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** Of Debian; others call it `registry`. */
const PROGRAM = 'docker-registry';

export function hasOciRegistry(): boolean {
  return spawnSync(PROGRAM, ['--version'], { stdio: 'ignore' }).status === 0;
}

/** A registry of images on loopback, without TLS; `host` is its name in those of images. */
export async function startOciRegistry(): Promise<{ host: string; close: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-registry-'));
  const host = `127.0.0.1:${await freePort()}`;
  const configuration = join(folder, 'config.json');
  const storage = { filesystem: { rootdirectory: join(folder, 'data') } };
  // JSON is YAML.
  writeFileSync(
    configuration,
    JSON.stringify({ version: '0.1', log: { level: 'error' }, storage, http: { addr: host } }),
  );
  const server = spawn(PROGRAM, ['serve', configuration], { stdio: 'ignore' });
  await until(
    () =>
      fetch(`http://${host}/v2/`).then(
        ({ ok }) => ok || null,
        () => null,
      ),
    HUNG_AFTER_MS,
  );
  return {
    host,
    close: () => {
      server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
