/**
 * The features that a client understands: google.bigtable.v2.FeatureFlags in the header bigtable-features, base64 of
 * either alphabet.
 */
import { WireReader } from '../../protobuf/index.ts';
import type { RpcCall } from '../../wire/index.ts';

/** The flags that Edubba observes. */
export interface Features {
  readonly reverseScans: boolean;
  readonly lastScannedRowResponses: boolean;
  /** The client limits the rate of its batches as answers ask: mutate_rows_rate_limit, or its second form. */
  readonly mutateRowsRateLimit: boolean;
}

const NONE: Features = { reverseScans: false, lastScannedRowResponses: false, mutateRowsRateLimit: false };
/**
 * One for each API. Remembers the last header: a client sends the same one with every call, and clients are of few
 * kinds.
 */
export class FeatureFlags {
  #header: string | undefined;
  #features = NONE;

  /** No flags where the header is missing or unreadable. */
  of(call: Pick<RpcCall, 'header'>): Features {
    const header = call.header('bigtable-features');
    if (header === undefined) return NONE;
    if (this.#header !== header) {
      this.#header = header;
      this.#features = decoded(header);
    }
    return this.#features;
  }
}

function decoded(header: string): Features {
  const reader = new WireReader(Buffer.from(header, 'base64'));
  const features: { -readonly [flag in keyof Features]: boolean } = { ...NONE };
  try {
    while (reader.next()) {
      if (reader.field === 1) features.reverseScans = reader.int64() !== 0;
      else if (reader.field === 4) features.lastScannedRowResponses = reader.int64() !== 0;
      else if (reader.field === 3 || reader.field === 5)
        features.mutateRowsRateLimit = reader.int64() !== 0 || features.mutateRowsRateLimit;
      else reader.skip();
    }
    return features;
  } catch {
    return NONE;
  }
}
