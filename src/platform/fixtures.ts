/** For tests: two ends of a port, each with a transport, as two threads have them; and a disk that is full. */
import * as fs from 'node:fs';
import { MessageChannel } from 'node:worker_threads';
import { ByteBudget, type Clock, LocalTransport, Metrics, type Transport } from '../env/index.ts';
import { PortPeer } from './ports/port-peer.ts';
import { PortTransport } from './ports/port-transport.ts';
import { nodeSyscalls, type Syscalls } from './posix/posix-syscalls.ts';

export interface PortEnd {
  readonly transport: PortTransport;
  readonly peer: PortPeer;
  readonly budget: ByteBudget;
}

export function portPair(clock: Clock): { here: PortEnd; there: PortEnd; close(): void } {
  const { port1, port2 } = new MessageChannel();
  const [here, there] = [port1, port2].map((port): PortEnd => {
    const transport = new PortTransport(new LocalTransport(clock));
    const budget = new ByteBudget(1 << 20);
    return {
      transport,
      budget,
      peer: new PortPeer({ port, clock, budget, metrics: new Metrics(), handlerOf: transport.handlerOf }),
    };
  }) as [PortEnd, PortEnd];
  return {
    here,
    there,
    close: () => {
      here.peer.close();
      there.peer.close();
    },
  };
}

/** One transport whose handlers are served at the other end of the port. */
export function acrossPort(here: PortEnd, there: PortEnd): Transport {
  return {
    serve: async (address, handler) => {
      const stop = await there.transport.serve(address, handler);
      here.transport.route(address, here.peer);
      return stop;
    },
    call: (...args) => here.transport.call(...args),
    stream: (...args) => here.transport.stream(...args),
  };
}

export function errno(code: string): Error {
  return Object.assign(new Error(`${code}: made to fail`), { code });
}

const PAGE = 4096;

/** System calls of a disk with a given number of free bytes. Pages of files take space once they were written. */
export function smallDisk(): { freeBytes: number; readonly syscalls: Syscalls } {
  const pages = new Map<number, Set<number>>();
  const pagesOf = (fd: number): Set<number> => {
    const { ino } = fs.fstatSync(fd);
    const of = pages.get(ino) ?? new Set<number>();
    pages.set(ino, of);
    return of;
  };
  /** Takes as many of the bytes as there is space for: like the system, it writes the part that fits. */
  const take = (fd: number, position: number, length: number): number => {
    const taken = pagesOf(fd);
    for (let page = Math.floor(position / PAGE); page * PAGE < position + length; page++) {
      if (taken.has(page)) continue;
      if (disk.freeBytes < PAGE) return Math.max(0, page * PAGE - position);
      disk.freeBytes -= PAGE;
      taken.add(page);
    }
    return length;
  };
  const limited =
    (write: Syscalls['write']): Syscalls['write'] =>
    async (fd, buffers, position) => {
      const bytes = Buffer.concat(buffers);
      const fits = take(fd, position, bytes.length);
      await write(fd, [bytes.subarray(0, fits)], position);
      if (fits < bytes.length) throw errno('ENOSPC');
    };
  const disk = {
    freeBytes: Number.POSITIVE_INFINITY,
    syscalls: {
      ...nodeSyscalls,
      space: async (path: string) => {
        const { freeBytes, totalBytes } = await nodeSyscalls.space(path);
        return { freeBytes: Math.min(disk.freeBytes, freeBytes), totalBytes };
      },
      write: limited(nodeSyscalls.write),
      writeDurable: limited(nodeSyscalls.writeDurable),
      writeDurableNow: (fd: number, buffers: readonly Uint8Array[], position: number): void => {
        const bytes = Buffer.concat(buffers);
        const fits = take(fd, position, bytes.length);
        if (fits > 0) nodeSyscalls.writeDurableNow!(fd, [bytes.subarray(0, fits)], position);
        if (fits < bytes.length) throw errno('ENOSPC');
      },
      truncate: async (fd: number, sizeBytes: number) => {
        const taken = pagesOf(fd);
        for (const page of taken) {
          if (page * PAGE < sizeBytes) continue;
          taken.delete(page);
          disk.freeBytes += PAGE;
        }
        await nodeSyscalls.truncate(fd, sizeBytes);
      },
      unlink: async (path: string) => {
        const { ino, nlink } = await fs.promises.lstat(path).catch(() => ({ ino: 0, nlink: 0 }));
        await nodeSyscalls.unlink(path);
        if (nlink !== 1) return;
        disk.freeBytes += (pages.get(ino)?.size ?? 0) * PAGE;
        pages.delete(ino);
      },
    },
  };
  return disk;
}

/** System calls without the time that a disk takes to make things durable. */
export function withoutSyncs(syscalls: Syscalls): Syscalls {
  return { ...syscalls, sync: async () => undefined, datasync: async () => undefined };
}
