/**
 * The targets of `npm run fuzz`: everything that reads bytes from a peer gets damaged input. A target has good
 * inputs to start from and `run`, which takes any bytes and throws when they did what no bytes may do.
 */
import assert from 'node:assert/strict';
import { create, toBinary } from '@bufbuild/protobuf';
import { BigtableError, Code } from '../../dist/src/base/index.js';
import { ManualClock, Pacer } from '../../dist/src/env/index.js';
import { MutationReader } from '../../dist/src/grpc/codec/mutation-reader.js';
import { ReadRowsReader } from '../../dist/src/grpc/codec/read-rows-reader.js';
import { RequestDecoder } from '../../dist/src/grpc/codec/request-decoder.js';
import * as bigtable from '../../dist/src/grpc/generated/google/bigtable/v2/bigtable_pb.js';
import { MessageReader } from '../../dist/src/wire/grpc/message-framing.js';
import { filters } from './filter-fuzz.mjs';
import { HeaderListTooLarge, HpackDecoder, HpackError } from '../../dist/src/wire/hpack/decoder.js';
import { HpackEncoder } from '../../dist/src/wire/hpack/encoder.js';
import { FrameReader, FrameType, frame, Http2Error, settingsFrame } from '../../dist/src/wire/http2/frames.js';

/**
 * @typedef {object} Target
 * @property {string} name
 * @property {Buffer[]} seeds
 * @property {(bytes: Buffer) => unknown} run
 */

/** @typedef {typeof import('../../dist/src/grpc/generated/google/bigtable/v2/data_pb.js')} Data */
/** @typedef {import('@bufbuild/protobuf').MessageInitShape<Data['MutationSchema']>} Mutation */
/** @typedef {import('@bufbuild/protobuf').MessageInitShape<Data['RowFilterSchema']>} RowFilter */

const clock = new ManualClock();
const decoder = new RequestDecoder(clock);
const pacer = new Pacer(clock, 1e9);
const MAX_FRAME_BYTES = 16_384;
const MAX_HEADER_BYTES = 8192;
const MAX_MESSAGE_BYTES = 1024 * 1024;

/**
 * Cuts bytes into chunks, as a socket may: the first byte says how.
 *
 * @param {Buffer} bytes
 */
function* chunks(bytes) {
  const size = bytes.length === 0 ? 1 : ((bytes[0] * 31) % 97) + 1;
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/**
 * Runs `work`; whatever it throws must be one of `kinds`.
 *
 * @param {(new (...args: never[]) => Error)[]} kinds
 * @param {() => void} work
 */
function expecting(kinds, work) {
  try {
    work();
  } catch (error) {
    if (!kinds.some((kind) => error instanceof kind)) throw error;
  }
}

/** @type {Target} */
const frames = {
  name: 'frames',
  seeds: [
    settingsFrame([
      [3, 100],
      [4, 65_535],
    ]),
    Buffer.concat([
      frame(FrameType.HEADERS, 4, 1, Buffer.from([0x83, 0x86, 0x84])),
      frame(FrameType.DATA, 1, 1, Buffer.alloc(300, 7)),
    ]),
    Buffer.concat([
      frame(FrameType.PING, 0, 0, Buffer.alloc(8)),
      frame(FrameType.WINDOW_UPDATE, 0, 3, Buffer.from([0, 0, 1, 0])),
      frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(8)),
    ]),
  ],
  run(bytes) {
    /** @param {Iterable<Buffer>} parts */
    const read = (parts) => {
      /** @type {(number | string)[]} */
      const seen = [];
      /** @type {string | undefined} */
      let failure;
      const reader = new FrameReader(MAX_FRAME_BYTES, (type, flags, streamId, payload) =>
        seen.push(type, flags, streamId, payload.toString('latin1')),
      );
      try {
        for (const part of parts) reader.push(part);
      } catch (error) {
        if (!(error instanceof Http2Error)) throw error;
        failure = error.message;
      }
      return { seen, failure };
    };
    // however the bytes are cut, the frames are the same
    assert.deepEqual(read(chunks(bytes)), read([bytes]));
  },
};

/** @type {Target} */
const hpack = {
  name: 'hpack',
  seeds: [
    new HpackEncoder().encode([
      ':method',
      'POST',
      ':path',
      '/google.bigtable.v2.Bigtable/ReadRows',
      'te',
      'trailers',
      'x-bin',
      'abc',
    ]),
    new HpackEncoder({ maxTableBytes: 64 }).encode([
      'a',
      'b',
      'authorization',
      'Bearer 1234567890',
      'c',
      'd'.repeat(200),
    ]),
    Buffer.from(
      '3fe10148826402 5885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff'.replace(' ', ''),
      'hex',
    ),
  ],
  run(bytes) {
    const decoder = new HpackDecoder({ maxTableBytes: 4096, maxHeaderBytes: MAX_HEADER_BYTES });
    expecting([HpackError], () => {
      for (const block of chunks(bytes)) {
        expecting([HeaderListTooLarge], () => {
          const headers = decoder.decode(block);
          let listBytes = 0;
          for (const text of headers) listBytes += text.length + 16;
          assert.ok(headers.length % 2 === 0 && listBytes <= MAX_HEADER_BYTES);
        });
      }
    });
    expecting([HpackError, HeaderListTooLarge], () => {
      const headers = new HpackDecoder({ maxTableBytes: 4096, maxHeaderBytes: MAX_HEADER_BYTES }).decode(bytes);
      const again = new HpackDecoder({ maxTableBytes: 4096, maxHeaderBytes: MAX_HEADER_BYTES }).decode(
        new HpackEncoder().encode(headers),
      );
      assert.deepEqual(again, headers);
    });
  },
};

/** @type {Target} */
const messages = {
  name: 'messages',
  seeds: [
    Buffer.concat([
      Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]),
      Buffer.from([1, 0, 0, 0, 0]),
      Buffer.from([0, 0, 0, 0, 200]),
      Buffer.alloc(200, 9),
    ]),
  ],
  run(bytes) {
    let outBytes = 0;
    const reader = new MessageReader({
      maxMessageBytes: MAX_MESSAGE_BYTES,
      onMessage: (message) => {
        outBytes += message.length;
      },
    });
    expecting([BigtableError], () => {
      for (const chunk of chunks(bytes)) reader.push(chunk);
    });
    assert.ok(outBytes <= bytes.length);
  },
};

/**
 * Requests are read, or are the caller's fault.
 *
 * @template {import('@bufbuild/protobuf').DescMessage} Schema
 * @param {string} name
 * @param {Schema} schema
 * @param {import('@bufbuild/protobuf').MessageInitShape<Schema>} init
 * @param {(bytes: Buffer) => unknown} read
 * @returns {Target}
 */
function codec(name, schema, init, read) {
  return {
    name,
    seeds: [Buffer.from(toBinary(schema, create(schema, init)))],
    async run(bytes) {
      try {
        await read(bytes);
      } catch (error) {
        if (!(error instanceof BigtableError) || error.code === Code.INTERNAL) throw error;
      }
    },
  };
}

const key = Buffer.from('row');
/** @type {Mutation} */
const setCell = {
  mutation: {
    case: 'setCell',
    value: { familyName: 'f', columnQualifier: Buffer.from('q'), timestampMicros: 1000n, value: Buffer.alloc(40, 1) },
  },
};
/** @type {Mutation} */
const deleteColumn = {
  mutation: {
    case: 'deleteFromColumn',
    value: { familyName: 'f', columnQualifier: key, timeRange: { startTimestampMicros: 1000n } },
  },
};
/** @type {RowFilter} */
const filter = {
  filter: {
    case: 'chain',
    value: {
      filters: [
        { filter: { case: 'rowKeyRegexFilter', value: Buffer.from('a.*') } },
        { filter: { case: 'cellsPerRowLimitFilter', value: 3 } },
      ],
    },
  },
};
const tableName = 'projects/p/instances/i/tables/t';

const codecs = [
  codec(
    'ReadRows',
    bigtable.ReadRowsRequestSchema,
    {
      tableName,
      rowsLimit: 5n,
      filter,
      rows: {
        rowKeys: [key],
        rowRanges: [
          { startKey: { case: 'startKeyClosed', value: key }, endKey: { case: 'endKeyOpen', value: Buffer.from('z') } },
        ],
      },
    },
    (bytes) => new ReadRowsReader(bytes, decoder, pacer).read(),
  ),
  codec(
    'MutateRow',
    bigtable.MutateRowRequestSchema,
    { tableName, rowKey: key, mutations: [setCell, deleteColumn] },
    (bytes) => new MutationReader(bytes, decoder, clock).mutateRow(),
  ),
  codec(
    'MutateRows',
    bigtable.MutateRowsRequestSchema,
    {
      tableName,
      entries: [
        { rowKey: key, mutations: [setCell] },
        { rowKey: key, mutations: [deleteColumn] },
      ],
    },
    (bytes) => new MutationReader(bytes, decoder, clock).mutateRows(),
  ),
  codec(
    'CheckAndMutateRow',
    bigtable.CheckAndMutateRowRequestSchema,
    { tableName, rowKey: key, predicateFilter: filter, trueMutations: [setCell] },
    (bytes) => new MutationReader(bytes, decoder, clock).checkAndMutateRow(),
  ),
  codec(
    'ReadModifyWriteRow',
    bigtable.ReadModifyWriteRowRequestSchema,
    {
      tableName,
      rowKey: key,
      rules: [{ familyName: 'f', columnQualifier: key, rule: { case: 'incrementAmount', value: 3n } }],
    },
    (bytes) => new MutationReader(bytes, decoder, clock).readModifyWriteRow(),
  ),
];

/** @type {Target[]} */
export const TARGETS = [frames, hpack, messages, filters, ...codecs];
