/** The peer's settings (RFC 9113, section 6.5): its values checked, unknown ones passed over. */
import { DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, ErrorCode, Http2Error, Setting } from './frames.ts';

const MAX_FRAME_BYTES = 0xffffff;

export class PeerSettings {
  /** Size of the table with which the peer decodes our headers. */
  hpackTableBytes = 4096;
  maxStreams = Number.POSITIVE_INFINITY;
  windowBytes = DEFAULT_WINDOW_BYTES;
  maxFrameBytes = DEFAULT_MAX_FRAME_BYTES;

  /** The payload of a SETTINGS frame without ACK. Throws Http2Error of the connection. */
  read(payload: Buffer): void {
    if (payload.length % 6 !== 0)
      throw new Http2Error(ErrorCode.FRAME_SIZE_ERROR, `SETTINGS of ${payload.length} bytes: no multiple of 6`);
    for (let at = 0; at < payload.length; at += 6) this.#set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  }

  #set(id: number, value: number): void {
    switch (id) {
      case Setting.HEADER_TABLE_SIZE:
        this.hpackTableBytes = value;
        break;
      case Setting.ENABLE_PUSH:
        if (value > 1) throw new Http2Error(ErrorCode.PROTOCOL_ERROR, `ENABLE_PUSH is ${value}; it is 0 or 1`);
        break;
      case Setting.MAX_CONCURRENT_STREAMS:
        this.maxStreams = value;
        break;
      case Setting.INITIAL_WINDOW_SIZE:
        if (value > 0x7fffffff)
          throw new Http2Error(ErrorCode.FLOW_CONTROL_ERROR, `INITIAL_WINDOW_SIZE is ${value}; the limit is 2^31-1`);
        this.windowBytes = value;
        break;
      case Setting.MAX_FRAME_SIZE:
        if (value < DEFAULT_MAX_FRAME_BYTES || value > MAX_FRAME_BYTES) {
          throw new Http2Error(
            ErrorCode.PROTOCOL_ERROR,
            `MAX_FRAME_SIZE is ${value}; it is ${DEFAULT_MAX_FRAME_BYTES} to ${MAX_FRAME_BYTES}`,
          );
        }
        this.maxFrameBytes = value;
        break;
    }
  }
}
