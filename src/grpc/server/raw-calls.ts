/** The door's side of calls that other servers pass on as bytes: decodes them, and calls the rows of this server. */
import { asBuffer } from '../../base/index.ts';
import { joinInSlices } from '../../env/index.ts';
import type { RawCallHandler, RowService } from '../../service/index.ts';
import type { ApiEnv } from '../../wire/index.ts';
import { RequestDecoder } from '../codec/request-decoder.ts';
import { DecodedWrites } from './decoded-writes.ts';
import { Reads } from './read-rows.ts';

/** `decoder`: may be that of the API of this server, so that equal filters are one object for both. */
export function rawCallHandler(rows: RowService, env: ApiEnv, decoder = new RequestDecoder(env.clock)): RawCallHandler {
  const writes = new DecodedWrites(rows, env, decoder);
  const reads = new Reads(rows, env, decoder, undefined);
  return {
    write: (context, write) =>
      writes
        .write(write.method, context, asBuffer(write.request), write)
        .then((answer) => (answer instanceof Uint8Array ? answer : joinInSlices(env.clock, answer))),
    read: (context, read) => reads.passed(context, read),
  };
}
