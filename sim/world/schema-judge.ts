/**
 * A judge of changes of schemas: once a master has answered one, no server that holds its lock, and serves a tablet of
 * the table, uses an earlier schema of it.
 */
import { decodeSchema, encodeSchema, schemaPath } from '../../src/metadata/index.ts';
import type { TableSchema } from '../../src/model/index.ts';
import type { Cluster } from './cluster.ts';
import type { NotedCall } from './network.ts';
import type { Verdicts } from './verdicts.ts';

/** Calls of masters that change the schema of a table that exists. */
const CHANGES = new Set(['updateTable', 'modifyFamilies']);

export class SchemaJudge {
  readonly #cluster: Cluster;
  readonly #verdicts: Verdicts;
  /** By table: its schemas so far, in the order in which they were written. */
  readonly #schemas = new Map<string, string[]>();

  constructor(cluster: Cluster, verdicts: Verdicts) {
    this.#cluster = cluster;
    this.#verdicts = verdicts;
  }

  /** A file of the lock service was written, or removed (undefined). */
  fileChanged(path: string, contents: Uint8Array | undefined): void {
    if (contents === undefined || !path.startsWith(schemaPath(''))) return;
    const schema = decodeSchema(path, contents);
    const schemas = this.#schemas.get(schema.id) ?? [];
    schemas.push(textOf(schema));
    this.#schemas.set(schema.id, schemas);
  }

  answered({ method }: NotedCall, answer: unknown): void {
    if (!CHANGES.has(method)) return;
    const schema = answer as TableSchema;
    const schemas = this.#schemas.get(schema.id) ?? [];
    // one that is written again counts as the first of its kind here, and as the last at a server
    const answered = schemas.indexOf(textOf(schema));
    const { locks, servers } = this.#cluster;
    for (const { process, server } of servers) {
      // asked of the lock service: a look at the server's own clock would change the run
      if (process === undefined || server === undefined || locks.endOfSessionMs(process) !== undefined) continue;
      const served = [...server.tablets.all()].find(({ tableId }) => tableId === schema.id);
      if (served === undefined) continue;
      const used = schemas.lastIndexOf(textOf(served.host.schema(schema.id)));
      if (used < answered)
        this.#verdicts.add(
          'schemas',
          `a change of the schema of table ${schema.name} is answered, and server ${server.name} at ${server.address} uses an earlier one`,
        );
    }
  }
}

function textOf(schema: TableSchema): string {
  return Buffer.from(encodeSchema(schema)).toString('latin1');
}
