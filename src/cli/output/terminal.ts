/**
 * The output of commands: answers on one stream, complaints on the other. Printing waits for the reader, so that a long
 * answer into a slow pipe takes no memory. When the reader has gone (`edubba read t | head`) the command ends quietly.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import type { Clock } from '../../env/index.ts';

/** The interval of retries while there is no space for log lines. */
const FULL_MS = 20;

export interface Terminal {
  /** Resolves when more may be printed; rejects with OutputClosed when the reader has gone. */
  print(text: string): Promise<void>;
  complain(text: string): void;
  /**
   * Writes log lines where complaints go. Never makes the process wait: resolves when the text is written, or can never
   * be. One at a time. Default: a complaint.
   */
  log?(text: string): Promise<void>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The width of the terminal for complaints; absent if it is not a terminal. */
  readonly columns?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

export class OutputClosed extends Error {
  constructor() {
    super('the reader of the output has gone');
  }
}

/**
 * Writes as Node does: to files synchronously, elsewhere when the reader has taken the earlier output. Unread output
 * keeps the process alive.
 */
function writeByNode(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stderr.write(text, () => resolve());
  });
}

/**
 * Writes without ever waiting for the reader, and without keeping the process from its end. Node has made pipes and
 * sockets such that a write to them does not wait. For a terminal, which can be stopped (Ctrl-S), Node waits: it is
 * opened once more.
 */
function logTo(stderr: NodeJS.WriteStream & { readonly fd: number }): (text: string) => Promise<void> {
  let fd = stderr.fd;
  try {
    if (process.platform === 'win32' || fstatSync(fd).isFile()) return writeByNode;
    if (stderr.isTTY)
      fd = openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return writeByNode;
  }
  return async (text) => {
    let bytes: Uint8Array = Buffer.from(text);
    while (bytes.length > 0) {
      try {
        bytes = bytes.subarray(writeSync(fd, bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        await new Promise((resolve) => setTimeout(resolve, FULL_MS).unref());
      }
    }
  };
}

/** Standard output and standard error of this process. */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  let closed = false;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    closed = true;
  });
  return {
    environment: process.env,
    columns: stderr.isTTY ? stderr.columns : undefined,
    print: async (text) => {
      if (closed) throw new OutputClosed();
      if (stdout.write(text)) return;
      await new Promise<void>((resolve) => {
        const settle = (): void => {
          stdout.off('drain', settle).off('error', settle).off('close', settle);
          resolve();
        };
        stdout.on('drain', settle).on('error', settle).on('close', settle);
      });
      if (closed) throw new OutputClosed();
    },
    complain: (text) => void stderr.write(text),
    log: logTo(stderr),
  };
}
