/** Warns of files that other users may read or write and should not: keys, tokens, and the authorities of either. */
import { readFile } from 'node:fs/promises';
import { warnOfOthers } from '../boot/index.ts';
import type { Logger } from '../env/index.ts';
import type { AccessOptions } from './access-control.ts';
import type { TlsFiles } from './tls-files.ts';

export async function warnOfFiles(
  { tls, access = {} }: { readonly tls?: TlsFiles | undefined; readonly access?: AccessOptions | undefined },
  logger: Logger,
): Promise<void> {
  const { tokensFile, jwt } = access;
  const keySet = jwt && !jwt.keys.includes('://') ? jwt.keys : undefined;
  const secrets = [
    [tls?.keyFile, 'the key of the server’s certificate'],
    [tokensFile, 'the list of tokens'],
    [
      keySet !== undefined && (await holdsPrivateKeys(keySet)) ? keySet : undefined,
      'a set of keys, with private ones among them',
    ],
  ] as const;
  const trusted = [
    [tls?.certFile, 'the server’s certificate'],
    [tls?.clientCaFile, 'the authorities of clients’ certificates'],
    [keySet, 'the keys of the tokens’ issuer'],
  ] as const;
  for (const [file, what] of secrets) await warnOfOthers(file, what, 'secret', logger);
  for (const [file, what] of trusted) await warnOfOthers(file, what, 'trusted', logger);
}

/** True where the set has the members of private or symmetric keys (RFC 7518). */
async function holdsPrivateKeys(file: string): Promise<boolean> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return /"(?:d|k)"\s*:/.test(text);
}
