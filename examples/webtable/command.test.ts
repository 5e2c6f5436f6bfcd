import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCommand, UsageError } from './command.ts';

const parse = (line: string, environment = {}) => parseCommand(line.split(' ').filter(Boolean), environment);
const host = 'www.example.com';

describe('the command line', () => {
  test('without a word it is the demo, on the pages of the packages, in a directory of its own', () => {
    const { question, place, trees } = parse('');
    assert.deepEqual(question, { kind: 'demo' });
    assert.equal(place, undefined);
    assert.deepEqual(
      trees.map((tree) => tree.host),
      ['www.dojotoolkit.org', 'www.cannonjs.org'],
    );
  });

  test('questions', () => {
    const asked = (line: string) => parse(`${line} --dir d`).question;
    assert.deepEqual(asked('load'), { kind: 'load', time: undefined });
    assert.deepEqual(asked('load --as-of mtime'), { kind: 'load', time: 'mtime' });
    assert.deepEqual(asked('load --as-of 2026-11-21T10:00:00Z'), { kind: 'load', time: Date.UTC(2026, 10, 21, 10) });
    const page = { host, path: 'a.html' };
    assert.deepEqual(asked('page www.example.com/a.html'), { kind: 'page', page, atMs: undefined });
    assert.deepEqual(asked('page www.example.com/a.html --as-of 2026-11-21T10:00:00Z'), {
      kind: 'page',
      page,
      atMs: Date.UTC(2026, 10, 21, 10),
    });
    assert.deepEqual(asked('anchors http://www.example.com/a.html'), { kind: 'anchors', page });
    assert.deepEqual(asked('site www.example.com'), { kind: 'site', host });
    assert.deepEqual(parse('--help').question, { kind: 'help' });
  });

  test('places: a directory, a server, or the server of the environment', () => {
    const environment = { BIGTABLE_EMULATOR_HOST: 'localhost:1' };
    assert.deepEqual(parse('load --dir d').place, { dir: 'd' });
    assert.deepEqual(parse('load --address localhost:2').place, { address: 'localhost:2' });
    assert.deepEqual(parse('demo', environment).place, { address: 'localhost:1' });
    assert.deepEqual(parse('load --address localhost:2', environment).place, { address: 'localhost:2' });
    assert.deepEqual(parse('load --dir d', environment).place, { dir: 'd' });
  });

  test('pages: a directory and the host it stands for', () => {
    assert.deepEqual(parse('--pages p --site Docs.Example.org').trees, [{ root: 'p', host: 'docs.example.org' }]);
    assert.deepEqual(parse('--pages p').trees, [{ root: 'p', host }]);
  });

  const refusals: readonly [line: string, message: RegExp][] = [
    ['load', /needs the place/],
    ['page --dir d', /needs a URL/],
    ['site --dir d', /needs a host/],
    ['page ftp://x/ --dir d', /not a URL/],
    ['page a b --dir d', /too many words: b/],
    ['load p --dir d', /takes no argument/],
    ['burn --dir d', /no command "burn"/],
    ['load --dir d --address a:1', /either --dir or --address/],
    ['load --dir d --as-of yesterday', /"yesterday" is not a time/],
    ['page www.example.com/ --as-of mtime --dir d', /"mtime" is not a time/],
    ['site x.org --as-of 2026-11-21 --dir d', /belongs to load and page/],
    ['load --dir d --site x.org', /--pages gives/],
    ['--colour', /--colour/],
  ];
  for (const [line, message] of refusals) {
    test(`refused: ${line}`, () => {
      assert.throws(
        () => parse(line),
        (error) => error instanceof UsageError && message.test(error.message),
      );
    });
  }
});
