/** A client that speaks HTTP/2 frame by frame over a real socket, and does what no client should. */
import { connect, type Socket } from 'node:net';
import { errorName, FrameType } from './raw-frames.ts';

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export class RawPeer {
  readonly socket: Socket;
  /** The frames of the server; payloads of DATA are only counted. */
  readonly frames: Frame[] = [];
  dataBytes = 0;
  isClosed = false;
  #unread = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
    });
  }

  static async connect(port: number, localAddress = '127.0.0.1'): Promise<RawPeer> {
    const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawPeer(socket);
  }

  /** Resolves when the bytes went to the machine, or the connection has ended. */
  send(bytes: Buffer): Promise<void> {
    if (this.socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      this.socket.once('close', resolve);
      this.socket.write(bytes, () => {
        this.socket.off('close', resolve);
        resolve();
      });
    });
  }

  /** The code of the server's GOAWAY, once it has come; 'closed' where the connection ended without one. */
  get end(): string | undefined {
    const last = this.frames.find(({ type }) => type === FrameType.GOAWAY);
    if (last) return `GOAWAY ${errorName(last.payload.readUInt32BE(4))}`;
    return this.isClosed || this.socket.readableEnded ? 'closed' : undefined;
  }

  resetOf(streamId: number): string | undefined {
    const reset = this.frames.find((each) => each.type === FrameType.RST_STREAM && each.streamId === streamId);
    return reset && `RST_STREAM ${errorName(reset.payload.readUInt32BE(0))}`;
  }

  /** The trailers of the answer to a stream, once they have come. */
  statusOf(streamId: number): string | undefined {
    const block = this.frames
      .findLast((each) => each.type === FrameType.HEADERS && each.streamId === streamId && (each.flags & 1) !== 0)
      ?.payload.latin1Slice();
    const at = block?.indexOf('grpc-status') ?? -1;
    if (block === undefined || at < 0) return undefined;
    const value = at + 'grpc-status'.length;
    return `status ${block.slice(value + 1, value + 1 + block.charCodeAt(value))}`;
  }

  #read(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#unread, chunk]);
    for (;;) {
      const end = bytes.length < 9 ? Number.POSITIVE_INFINITY : 9 + bytes.readUIntBE(0, 3);
      if (end > bytes.length) break;
      const [type, flags, streamId] = [bytes.readUInt8(3), bytes.readUInt8(4), bytes.readUInt32BE(5)];
      if (type === FrameType.DATA) this.dataBytes += end - 9;
      else this.frames.push({ type, flags, streamId, payload: Buffer.from(bytes.subarray(9, end)) });
      bytes = bytes.subarray(end);
    }
    this.#unread = bytes;
  }

  destroy(): void {
    this.socket.destroy();
  }
}
