import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { blocksOf, commandsOf, firstLine } from './markdown.ts';

const PAGE = `# A page

Words:

    one --option
    two \\
      more        # why

    three

- a point

    with more of its words

After the list:

\`\`\`ts
const x = 1;

    indented inside
\`\`\`
    not code: no empty line stands before it
`;

describe('blocks of a page', () => {
  test('fenced and indented, with line and language; no parts of lists', () => {
    assert.deepEqual(blocksOf(PAGE), [
      { line: 5, language: '', text: 'one --option\ntwo \\\n  more        # why\n\nthree\n' },
      { line: 18, language: 'ts', text: 'const x = 1;\n\n    indented inside\n' },
    ]);
  });

  test('commands: continued lines are one, comments are none', () => {
    const [block] = blocksOf(PAGE);
    assert.ok(block);
    assert.deepEqual(commandsOf(block), ['one --option', 'two more', 'three']);
    assert.equal(firstLine(block), 'one --option');
  });

  test('a fence that never ends is refused', () =>
    assert.throws(() => blocksOf('a\n```sh\nx\n'), /line 2: the fence ends nowhere/));
});
