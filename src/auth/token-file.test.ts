import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { addToken, readTokens, removeTokens } from './token-file.ts';

const ADDED = '2026-11-21T12:00:00Z';

describe('the file of tokens', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'edubba-tokens-'));
  });
  after(() => rm(directory, { recursive: true }));

  test('is made by the first token, grows, shrinks by id and by name', async () => {
    const file = join(directory, 'tokens.txt');
    const tokens = [
      await addToken(file, 'alice', ADDED),
      await addToken(file, 'bob', ADDED),
      await addToken(file, 'alice', ADDED),
    ];
    const list = await readTokens(file);
    assert.deepEqual(
      tokens.map((token) => list.principalOf(token)),
      ['alice', 'bob', 'alice'],
    );
    assert.deepEqual(
      list.entries.map(({ added }) => added),
      [ADDED, ADDED, ADDED],
    );
    const first = list.entries[0]?.id as string;
    assert.deepEqual(
      (await removeTokens(file, first)).map(({ id }) => id),
      [first],
    );
    assert.deepEqual(
      tokens.map(
        (
          (rest) => (token: string) =>
            rest.principalOf(token)
        )(await readTokens(file)),
      ),
      [undefined, 'bob', 'alice'],
    );
    await addToken(file, 'alice', ADDED);
    assert.equal((await removeTokens(file, 'alice')).length, 2);
    assert.deepEqual(
      (await readTokens(file)).entries.map(({ principal }) => principal),
      ['bob'],
    );
    await assert.rejects(removeTokens(file, 'alice'), {
      code: Code.NOT_FOUND,
      message: /no token with the id or name "alice"/,
    });
    assert.deepEqual(await readdir(directory), ['tokens.txt']);
  });

  test('is for its owner alone', async () => {
    const file = join(directory, 'private.txt');
    await addToken(file, 'alice', ADDED);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  });

  test('another file is neither read nor overwritten', async () => {
    const file = join(directory, 'other.txt');
    await writeFile(file, 'my notes\n');
    await assert.rejects(addToken(file, 'alice', ADDED), {
      code: Code.INVALID_ARGUMENT,
      message: /other\.txt is not a list of tokens/,
    });
    assert.equal(await readFile(file, 'utf8'), 'my notes\n');
  });

  test('a missing file, and one that cannot be written, fail with a message', async () => {
    await assert.rejects(readTokens(join(directory, 'none')), { code: Code.NOT_FOUND, message: /edubba token add/ });
    await assert.rejects(readTokens(directory), { code: Code.INVALID_ARGUMENT, message: /cannot read/ });
    await assert.rejects(addToken(join(directory, 'no', 'where'), 'a', ADDED), {
      code: Code.FAILED_PRECONDITION,
      message: /cannot write/,
    });
  });
});
