/**
 * Bytes for people, as cbt shows them: text stays text, what cannot be printed is escaped, so that no cell can play
 * tricks with a terminal.
 */

const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const SHORT: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

const REPLACEMENT = Buffer.from('\ufffd');

/** In double quotes, with Go's escapes (%q): "a\"b\n\x00\u200b". */
export function quoted(bytes: Buffer): string {
  return `"${escaped(bytes, (text) => (text === '"' || text === '\\' ? `\\${text}` : text))}"`;
}

/** Without quotes: a key or column. Only what cannot be printed is escaped. */
export function visible(bytes: Buffer): string {
  return escaped(bytes, (text) => text);
}

function escaped(bytes: Buffer, printable: (text: string) => string): string {
  let out = '';
  for (let at = 0; at < bytes.length; ) {
    const character = characterAt(bytes, at);
    if (character === undefined) {
      out += hex('x', bytes[at]!, 2);
      at++;
      continue;
    }
    out += PRINTABLE.test(character)
      ? printable(character)
      : (SHORT[character] ?? escapedRune(character.codePointAt(0)!));
    at += Buffer.byteLength(character);
  }
  return out;
}

function escapedRune(rune: number): string {
  if (rune < 0x80) return hex('x', rune, 2);
  return rune < 0x10000 ? hex('u', rune, 4) : hex('U', rune, 8);
}

function hex(letter: string, value: number, digits: number): string {
  return `\\${letter}${value.toString(16).padStart(digits, '0')}`;
}

/** The character whose UTF-8 begins at `at`; undefined if there is none. */
function characterAt(bytes: Buffer, at: number): string | undefined {
  const lead = bytes[at]!;
  if (lead < 0x80) return String.fromCharCode(lead);
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > bytes.length) return undefined;
  const text = bytes.toString('utf8', at, at + length);
  // what is malformed was replaced, and the replacement may have as many bytes
  const isReplaced =
    text.includes('\ufffd') && bytes.compare(REPLACEMENT, 0, REPLACEMENT.length, at, at + length) !== 0;
  return isReplaced || text.length !== (length === 4 ? 2 : 1) ? undefined : text;
}
