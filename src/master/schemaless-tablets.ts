/**
 * Tablets of tables whose schema has vanished, though no user has deleted them: kept until the schema is back
 * (docs/decisions/0021-tables-without-a-schema.md).
 */
import { assert } from '../base/index.ts';
import type { Env, RequestContext } from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import { commitOfRow, keyOfRow, type MetadataRow, releasedAt } from '../metadata/index.ts';
import type { Servers } from './servers.ts';

export interface SchemalessTabletsOptions {
  readonly env: Env;
  readonly metadata: MetadataClient;
  readonly servers: Servers;
}

export class SchemalessTablets {
  readonly #options: SchemalessTabletsOptions;
  /** Ids of the tables that the log has named. */
  readonly #reported = new Set<string>();

  constructor(options: SchemalessTabletsOptions) {
    this.#options = options;
  }

  /** Keeps the tablet's files; no server has it. Takes a dead server out of the row. */
  async keep(row: MetadataRow, context: RequestContext): Promise<void> {
    const { servers, metadata, env } = this.#options;
    const { tableId, server, epoch } = row;
    assert(epoch > 0, 'the row of a tablet that was never given to a server is removed, not kept');
    if (!this.#reported.has(tableId)) {
      this.#reported.add(tableId);
      const message =
        `table ${tableId} has tablets and no schema, though it was not deleted: the schema's file has vanished from ` +
        'lock-service/files. Its data is kept and cannot be read. Stop the server and put that file back from a copy ' +
        'of the directory, or have a schema made anew by "edubba inspect repair" (docs/REPAIR.md)';
      env.logger.error(message, { table: tableId });
    }
    // a sweep needs an answer of every server that a row names
    if (server === undefined || servers.get(server.name) !== undefined || !(await servers.isDead(server.name))) return;
    const event = { kind: 'released', atMicros: env.clock.nowMicros() } as const;
    const released = releasedAt(row, event.atMicros);
    await servers.checkMastership();
    await metadata.commit([commitOfRow(env.random.uniqueName(), event, keyOfRow(row), row, released)], context);
  }
}
