/** Calls are passed on as bytes only where the caller has rights on all families: nobody has read these bytes yet. */
import type { ByteString } from '../base/index.ts';
import type { PullStream, RequestContext } from '../env/index.ts';
import type { RawCallPasser, RawRead, RawWrite, ReadPart } from '../service/index.ts';
import type { RowGuard } from './row-guard.ts';

export class GuardedPasser implements RawCallPasser {
  readonly #passer: RawCallPasser;
  readonly #rows: RowGuard;

  constructor(passer: RawCallPasser, rows: RowGuard) {
    this.#passer = passer;
    this.#rows = rows;
  }

  isElsewhere(table: string, row: ByteString): boolean {
    return this.#passer.isElsewhere(table, row);
  }

  write(context: RequestContext, write: RawWrite): Promise<Uint8Array | undefined> {
    return this.#mayPass(context, write) ? this.#passer.write(context, write) : Promise.resolve(undefined);
  }

  read(context: RequestContext, read: RawRead): PullStream<ReadPart> | undefined {
    return this.#rows.hasAll(context, 'read', read.table) ? this.#passer.read(context, read) : undefined;
  }

  #mayPass(context: RequestContext, { method, table }: RawWrite): boolean {
    switch (method) {
      case 'mutateRow':
        return this.#rows.hasAll(context, 'write', table);
      case 'checkAndMutateRow':
        return this.#rows.hasAll(context, 'read', table) && this.#rows.hasAll(context, 'write', table);
      case 'readModifyWriteRow':
        return this.#rows.hasAll(context, 'readModifyWrite', table);
    }
  }
}
