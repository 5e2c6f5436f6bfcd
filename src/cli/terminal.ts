/**
 * Where commands print: answers on one stream, complaints on the other. Printing waits for the reader, so that a long answer into a slow pipe
 * takes no memory; where nobody reads any more (`edubba read t | head`) the command ends quietly.
 */
import type { Clock } from '../env/index.ts';

export interface Terminal {
  /** Resolves when more may be printed; rejects with OutputClosed when the reader has gone. */
  print(text: string): Promise<void>;
  complain(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How wide the terminal is that complaints go to; left out where they go to none. */
  readonly columns?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

export class OutputClosed extends Error {
  constructor() {
    super('nobody reads the output any more');
  }
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
  };
}
