/**
 * The file of tokens on disk: read whole, written whole. A change is a new file that replaces the old one, so that a
 * server that reads it meanwhile sees the old list or the new one. Only its owner may read it.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BigtableError, Code, notFound } from '../base/index.ts';
import { makeToken, type TokenEntry, TokenList } from './token-list.ts';

/** NOT_FOUND where the file is missing, INVALID_ARGUMENT where it is another kind of file. */
export async function readTokens(path: string): Promise<TokenList> {
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT')
      throw notFound(`file of tokens ${path} not found: \`edubba token add ${path} NAME\` makes it`);
    throw new BigtableError(Code.INVALID_ARGUMENT, `cannot read ${path}: ${cause.message}`, { cause });
  });
  return TokenList.parse(text, path);
}

/**
 * Adds a token for `principal`, in a new file where there is none, and returns it: it cannot be read again. `added`:
 * the time, in ISO 8601.
 */
export async function addToken(path: string, principal: string, added: string): Promise<string> {
  const { token, entry } = makeToken(principal, added, randomBytes(40));
  const before = await readTokens(path).catch((error: unknown) => {
    if (error instanceof BigtableError && error.code === Code.NOT_FOUND) return new TokenList([]);
    throw error;
  });
  await write(path, new TokenList([...before.entries, entry]));
  return token;
}

/** Removes the token with that id, or all with that name, and returns them. NOT_FOUND where there is none. */
export async function removeTokens(path: string, which: string): Promise<readonly TokenEntry[]> {
  const { entries } = await readTokens(path);
  const byId = entries.filter(({ id }) => id === which);
  const removed = byId.length > 0 ? byId : entries.filter(({ principal }) => principal === which);
  if (removed.length === 0) throw notFound(`${path} has no token with the id or name "${which}"`);
  await write(path, new TokenList(entries.filter((entry) => !removed.includes(entry))));
  return removed;
}

/**
 * Writes a token into a file that only its owner may read (mode 0600). ALREADY_EXISTS where there is a file of that
 * name, which is never overwritten; FAILED_PRECONDITION where none can be made. A file whose writing fails is removed.
 */
export async function writeToken(path: string, obtain: () => Promise<string>): Promise<void> {
  const file = await open(path, 'wx', 0o600).catch((cause: NodeJS.ErrnoException) => {
    const code = cause.code === 'EEXIST' ? Code.ALREADY_EXISTS : Code.FAILED_PRECONDITION;
    throw new BigtableError(code, `cannot make ${path} for the token: ${cause.message}`, { cause });
  });
  try {
    await file.writeFile(`${await obtain()}\n`);
    await file.sync();
  } catch (error) {
    await rm(path, { force: true }).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

async function write(path: string, list: TokenList): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(list.toString());
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {});
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `cannot write ${path}: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}

/** A removed token must not come back with the next power loss. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
