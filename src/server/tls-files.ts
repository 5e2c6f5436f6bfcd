/**
 * TLS from files, reloaded when they change, so that renewed certificates need no restart.
 *
 * Invariant: files that cannot be read or are not certificates are logged, and the last ones that worked stay in use.
 */
import { readInput } from '../boot/index.ts';
import type { ApiEnv, TlsOptions } from '../wire/index.ts';
import { watchFiles } from './watch-files.ts';

export interface TlsFiles {
  /** Paths of PEM files. */
  readonly keyFile: string;
  readonly certFile: string;
  /** The authorities of clients' certificates. Given: only clients with one are served. */
  readonly clientCaFile?: string | undefined;
  /** The oldest version of TLS that is accepted. Default: 1.2. */
  readonly minVersion?: '1.2' | '1.3' | undefined;
}

/** INVALID_ARGUMENT where a file cannot be read. */
export async function readTlsFiles({ keyFile, certFile, clientCaFile, minVersion }: TlsFiles): Promise<TlsOptions> {
  const [key, cert] = [await readInput(keyFile), await readInput(certFile)];
  return clientCaFile === undefined
    ? { key, cert, minVersion }
    : { key, cert, minVersion, ca: await readInput(clientCaFile), requestCert: true };
}

/** Calls `reload` with the contents of the files when they have changed. Returns a function that stops it. */
export function watchTlsFiles(
  files: TlsFiles,
  env: Pick<ApiEnv, 'clock' | 'logger'>,
  reload: (options: TlsOptions) => void,
): () => void {
  const { keyFile, certFile, clientCaFile } = files;
  const paths = [keyFile, certFile, ...(clientCaFile === undefined ? [] : [clientCaFile])];
  return watchFiles('certificates', paths, env, async () => reload(await readTlsFiles(files)));
}
