/**
 * HTTP/2 as bytes, written down once more and apart from the product's own code: frames, codes, and headers as HPACK
 * literals.
 */

export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;
export const Flag = { END_STREAM: 1, END_HEADERS: 4 } as const;
export const CANCEL = 8;
export const INITIAL_WINDOW_SIZE = 4;

const ERRORS = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
];

export function errorName(code: number): string {
  return ERRORS[code] ?? String(code);
}

export function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function windowUpdateFrame(streamId: number, bytes: number): Buffer {
  return frame(FrameType.WINDOW_UPDATE, 0, streamId, uint32(bytes));
}

export function rstStreamFrame(streamId: number, code: number): Buffer {
  return frame(FrameType.RST_STREAM, 0, streamId, uint32(code));
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  return frame(
    FrameType.SETTINGS,
    0,
    0,
    Buffer.concat(settings.map(([id, value]) => Buffer.concat([Buffer.of(0, id), uint32(value)]))),
  );
}

/** name, value, name, value …, each below 127 bytes, that no table keeps. */
export function headerBlock(fields: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (const [i, text] of fields.entries())
    parts.push(Buffer.from(i % 2 === 0 ? [0, text.length] : [text.length]), Buffer.from(text, 'latin1'));
  return Buffer.concat(parts);
}

/** The headers of a gRPC call, as `headerBlock` writes them. */
export function callHeaders(path: string, ...more: readonly string[]): Buffer {
  const pseudo = [':method', 'POST', ':scheme', 'http', ':path', path, ':authority', 'a'];
  return headerBlock([...pseudo, 'te', 'trailers', 'content-type', 'application/grpc', ...more]);
}

/** The five bytes before a gRPC message. */
export function messagePrefix(lengthBytes: number, flag = 0): Buffer {
  return Buffer.concat([Buffer.of(flag), uint32(lengthBytes)]);
}

export const HELLO = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settingsFrame([])]);
