import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseHtml, shortened } from './html-page.ts';

const parse = (text: string) => parseHtml(Buffer.from(text));

describe('the language of a page', () => {
  test('is what the page declares', () => {
    assert.equal(parse('<!DOCTYPE html><html lang="en"><body>').language, 'en');
    assert.equal(parse("<HTML LANG='pt-BR'>").language, 'pt-BR');
    assert.equal(parse('<html xml:lang="de" xmlns="http://www.w3.org/1999/xhtml">').language, 'de');
    assert.equal(parse('<html><head><meta http-equiv="Content-Language" content="fr">').language, 'fr');
    assert.equal(parse('<html lang="nl"><meta http-equiv="content-language" content="fr">').language, 'nl');
  });

  test('is absent where none is declared, or nothing that could be one', () => {
    for (const text of [
      '',
      'words',
      '<html>',
      '<html lang="">',
      '<html lang="{{lang}}">',
      '<html lang="en, de">',
      '<div lang="en">',
    ]) {
      assert.equal(parse(text).language, undefined, text);
    }
  });
});

describe('the links of a page', () => {
  test('come with their texts, white space made single blanks', () => {
    const { links, title } = parse(`<title> The
      page </title><p><a href="a.html">one
         <b>two</b>&amp;three</a> <a href=' b.html '></a><a name="here">no link</a>`);
    assert.equal(title, 'The page');
    assert.deepEqual(links, [
      { href: 'a.html', text: 'one two&three' },
      { href: 'b.html', text: '' },
    ]);
  });

  test('an image speaks by its alt, an area too', () => {
    const { links } = parse(
      '<a href="x"><img src="i.png" alt="An image">of it</a><map><area href="y" alt="A corner"><area alt="no link"></map>',
    );
    assert.deepEqual(links, [
      { href: 'x', text: 'An image of it' },
      { href: 'y', text: 'A corner' },
    ]);
  });

  test('in scripts, styles and comments are none', () => {
    assert.deepEqual(
      parse('<script>"<a href=x>y</a>"</script><style>/*<a href=x>*/</style><!-- <a href="x">y</a> -->').links,
      [],
    );
  });

  test('a link that is not closed ends where the next one starts, or with the page', () => {
    assert.deepEqual(parse('<a href="1">first<a href="2">second').links, [
      { href: '1', text: 'first' },
      { href: '2', text: 'second' },
    ]);
  });

  test('a text is cut at 1 KiB, however long the page is', () => {
    const [link] = parse(`<a href="x">${'é'.repeat(1_000_000)}`).links;
    assert.equal(Buffer.byteLength(link?.text ?? ''), 1024);
  });

  test('<base> is told, the first one', () => {
    assert.equal(parse('<base href="/docs/"><base href="/other/">').base, '/docs/');
    assert.equal(parse('<p>').base, undefined);
  });
});

test('the encoding is that of the mark, of the page, or UTF-8, or Western', () => {
  const titled = (bytes: Uint8Array) => parseHtml(bytes).title;
  assert.equal(titled(Buffer.from('<title>Ĝis</title>', 'utf8')), 'Ĝis');
  assert.equal(titled(Buffer.from('<title>déjà</title>', 'latin1')), 'déjà');
  assert.equal(titled(Buffer.from('<meta charset="iso-8859-2"><title>\xb1</title>', 'latin1')), 'ą');
  assert.equal(
    titled(
      Buffer.from(
        '<meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><title>\x93\xfa</title>',
        'latin1',
      ),
    ),
    '日',
  );
  assert.equal(titled(Buffer.from('<meta charset="no-such"><title>plain</title>')), 'plain');
  assert.equal(titled(Buffer.from('\ufeff<title>wide</title>', 'utf16le')), 'wide');
});

test('no bytes break it', () => {
  const pieces = [
    '<a href="x">',
    '</a>',
    '<html lang="en">',
    '<title>',
    '<script>',
    '<!--',
    '-->',
    '<',
    '>',
    '"',
    '&#x110000;',
    '\0',
    'text',
    '</',
  ];
  const soup = fc.array(fc.constantFrom(...pieces));
  fc.assert(fc.property(soup, (parts) => void parse(parts.join(''))));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void parseHtml(bytes)));
});

test('shortened texts are whole characters within their limit, and a start of the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 0, max: 40 }), (text, most) => {
      const short = shortened(text, most);
      assert.ok(Buffer.byteLength(short) <= most);
      assert.ok(shortened(text, 1_000_000).startsWith(short));
      assert.ok(!short.includes('\ufffd') || text.includes('\ufffd'));
    }),
  );
});
