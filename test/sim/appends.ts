/** Appends of a commit log, as the judges of the simulator get them. */
import { type NewRecord, Origin, ServerLog } from '../../src/commitlog/index.ts';
import { MemoryFileSystem } from '../../src/env/index.ts';

export interface Append {
  readonly position: number;
  readonly bytes: Buffer;
}

/** An append of one record for each of the rows, which are of a table at epoch 1; the first is record 1. */
export async function appendsOf(log: string, tableId: string, rows: readonly string[]): Promise<Append[]> {
  const fileSystem = new MemoryFileSystem();
  const writer = await ServerLog.open({ fileSystem, path: log });
  for (const row of rows) {
    const mutations = [{ kind: 'setCell', family: 'f', qualifier: '', timestamp: 1, value: Buffer.from('x') }] as const;
    const body = { kind: 'rows', rows: [{ row, mutations }] } as const;
    const record: NewRecord = { tableId, epoch: 1, commitMicros: 1, origin: Origin.user, body };
    await writer.append(record).append.durable;
  }
  const appends: Append[] = [];
  for await (const { position, bytes } of fileSystem.readLog(log))
    appends.push({ position, bytes: Buffer.from(bytes) });
  return appends;
}
