/**
 * The calls of clients that other servers pass on to this one as bytes
 * (docs/decisions/0047-calls-passed-on-as-bytes.md): checks the envelope, and hands the bytes to the door of the API,
 * which decodes them and calls this server back.
 *
 * Invariant: nothing is decoded before the envelope names this incarnation and a tablet that it serves at that epoch. A
 * call that was passed on is carried out here or refused, never passed on again.
 */
import { BigtableError, type ByteString, Code } from '../base/index.ts';
import { asRefusal, type RequestContext } from '../env/index.ts';
import {
  checkAddressed,
  type Envelope,
  isNotServing,
  notServing,
  type PassedRead,
  type PassedWrite,
} from '../protocol/index.ts';
import type { RawCallHandler, ReadPart } from '../service/index.ts';
import type { ServedTablet } from './tablet-map.ts';

export interface PassedCallsOptions {
  readonly serverName: string;
  /** The tablet of the row; throws "not serving" where there is none. */
  readonly serving: (tableId: string, row: ByteString) => ServedTablet;
  /** The door of the API; undefined where this server has none. */
  readonly rawCalls?: RawCallHandler | undefined;
}

export class PassedCalls {
  readonly #options: PassedCallsOptions;

  constructor(options: PassedCallsOptions) {
    this.#options = options;
  }

  async write(message: PassedWrite, context: RequestContext): Promise<Uint8Array> {
    this.#checkEnvelope(message, message.row);
    return this.#door()
      .write(context, message)
      .catch((error: unknown) => {
        // it is one call of this server: if that was refused, this one is
        throw error instanceof BigtableError && isNotServing(error) ? asRefusal(error) : error;
      });
  }

  read(message: PassedRead, context: RequestContext): AsyncIterable<ReadPart> {
    this.#checkEnvelope(message, message.range.start);
    return this.#door().read(context, message);
  }

  #checkEnvelope(envelope: Envelope, row: ByteString): void {
    checkAddressed(envelope, this.#options.serverName);
    const { tableId, epoch } = envelope;
    const served = this.#options.serving(tableId, row);
    // the sender knows an assignment that is over, and reads METADATA again
    if (served.epoch !== epoch) throw notServing(tableId, row);
  }

  #door(): RawCallHandler {
    const { rawCalls } = this.#options;
    if (rawCalls === undefined)
      throw new BigtableError(Code.UNIMPLEMENTED, 'this tablet server takes no calls as bytes');
    return rawCalls;
  }
}
