/**
 * Passes calls on as bytes to the tablet servers of their rows (docs/decisions/0047-calls-passed-on-as-bytes.md).
 *
 * Invariant: a call is passed on at most once here. "Not serving" drops the location, and the caller decodes the call,
 * which then searches and tries again as any other.
 */
import type { ByteString } from '../base/index.ts';
import { PullStream, pullStreamOf, type RequestContext, type Transport } from '../env/index.ts';
import type { AssignedTablet } from '../locator/index.ts';
import type { RowRange } from '../model/index.ts';
import { callServer, streamFrom } from '../protocol/index.ts';
import { canReadOn, type RawCallPasser, type RawRead, type RawWrite, type ReadPart } from '../service/index.ts';
import { isMisdirected, type Router } from './router.ts';

export interface CallPasserParts {
  readonly router: Router;
  readonly transport: Transport;
  /** The address of the tablet server of this process or thread: calls for its rows are decoded here. */
  readonly ownAddress: string;
}

export class CallPasser implements RawCallPasser {
  readonly #parts: CallPasserParts;

  constructor(parts: CallPasserParts) {
    this.#parts = parts;
  }

  isElsewhere(table: string, row: ByteString): boolean {
    return this.#elsewhere(table, row) !== undefined;
  }

  write(context: RequestContext, write: RawWrite): Promise<Uint8Array | undefined> {
    const { router, transport } = this.#parts;
    const tablet = this.#elsewhere(write.table, write.row);
    if (tablet === undefined) return Promise.resolve(undefined);
    const { server, tableId, epoch } = tablet;
    const { method, table, row, maxAnswerBytes, request } = write;
    // Hot path: a spread would cost more than the rest of this
    const schemaVersion = router.schemaVersion(tableId);
    const message = { to: server.name, tableId, epoch, method, table, row, maxAnswerBytes, request, schemaVersion };
    return callServer(transport, server.address, 'passedWrite', message, context).catch((error: unknown) => {
      if (!isMisdirected(error)) throw error;
      router.drop(tablet);
      return undefined;
    });
  }

  read(context: RequestContext, read: RawRead): PullStream<ReadPart> | undefined {
    const { router, transport } = this.#parts;
    const tablet = this.#elsewhere(read.table, read.range.start);
    if (tablet === undefined || !isInside(read.range, tablet.range)) return undefined;
    const { server, tableId, epoch } = tablet;
    const { table, range, form, request } = read;
    const schemaVersion = router.schemaVersion(tableId);
    const message = { to: server.name, tableId, epoch, table, range, form, request, schemaVersion };
    const parts = streamFrom(transport, server.address, 'passedRead', message, context);
    return new PassedRead(pullStreamOf(parts), () => router.drop(tablet));
  }

  /** The tablet of the row if another server has it. */
  #elsewhere(table: string, row: ByteString): AssignedTablet | undefined {
    const { router, ownAddress } = this.#parts;
    const schema = router.known(table);
    const tablet = schema && router.cached(schema.id, row);
    return tablet?.server.address === ownAddress ? undefined : tablet;
  }
}

/** A read at another server; drops its location where the read may continue elsewhere. */
class PassedRead extends PullStream<ReadPart> {
  readonly #parts: PullStream<ReadPart>;
  readonly #dropLocation: () => void;

  constructor(parts: PullStream<ReadPart>, dropLocation: () => void) {
    super();
    this.#parts = parts;
    this.#dropLocation = dropLocation;
  }

  pull(): ReadPart | undefined | Promise<ReadPart | undefined> {
    try {
      const pulled = this.#parts.pull();
      return pulled instanceof Promise ? pulled.catch((error: unknown) => this.#failed(error)) : pulled;
    } catch (error) {
      return this.#failed(error);
    }
  }

  end(): void | Promise<void> {
    return this.#parts.end();
  }

  #failed(error: unknown): never {
    if (canReadOn(error)) this.#dropLocation();
    throw error;
  }
}

function isInside(inner: RowRange, outer: RowRange): boolean {
  return outer.end === undefined || (inner.end !== undefined && inner.end <= outer.end);
}
