import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noLocksText } from './directory-lock.ts';

test('where file locks have no binary the machine is named, and musl with the way out of it', () => {
  const machine = `${process.platform} ${process.arch}`;
  assert.match(noLocksText(false), new RegExp(`^no file locks on ${machine}: .*':memory:' works here$`));
  assert.match(
    noLocksText(true),
    new RegExp(
      `^no file locks on ${machine} with musl, as Alpine has it: .* needs glibc\\. Use an image with glibc, such as node:22-slim; ':memory:' works here$`,
    ),
  );
});
