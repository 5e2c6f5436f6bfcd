/**
 * Codecs that need native or `node:` code are components too, handed in at construction: the pure rooms know only this.
 */

/** CRC-32C of `bytes`, going on from `seed`. The plain one is base's crc32c; platform has a native one. */
export type Checksum = (bytes: Uint8Array, seed?: number) => number;

export interface Codecs {
  readonly checksum: Checksum;
}
