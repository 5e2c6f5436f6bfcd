/**
 * The width of pages (docs/STYLE.md, "Pages"): one sentence a line, at most 100 columns; tables, code blocks and
 * headings apart.
 *
 *   node scripts/lint/page-width.mjs --write PAGE...     wraps the pages' paragraphs so
 */
import { readFileSync, writeFileSync } from 'node:fs';

const MAX_COLUMNS = 100;
/** A line of one long link, or of one long piece of code, cannot be wrapped. */
const UNBREAKABLE = /^\s*(?:(?:[-*]|\d+\.) +)?(?:\S+|\S*`[^`]+`\S*)$/;
/** Lines that are no text of a paragraph: tables, headings, HTML. */
const APART = /^\s*\||^#|^</;
const INDENTED_CODE = /^ {4}/;
const ITEM = /^(\s*)((?:[-*]|\d+\.) +)(.*)$/;
/** A sentence ends here if the next one begins like a sentence. */
const SENTENCE_END = /[.?!][)"'*_`\]]* +(?=[A-Z`"'(*[0-9~-])/g;

/**
 * The numbers of the lines of a page that are too wide, from 1.
 *
 * @param {string} text
 */
export function wideLines(text) {
  const wide = [];
  let isCode = false;
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trimStart().startsWith('```')) isCode = !isCode;
    else if (
      !isCode &&
      line.length > MAX_COLUMNS &&
      !APART.test(line) &&
      !INDENTED_CODE.test(line) &&
      !UNBREAKABLE.test(line)
    )
      wide.push(i + 1);
  }
  return wide;
}

/** @param {string} text */
function sentences(text) {
  const masked = text.replaceAll(/`[^`]*`/g, (code) => `\`${'x'.repeat(code.length - 2)}\``);
  const ends = [...masked.matchAll(SENTENCE_END)].map((end) => end.index + end[0].length);
  return [0, ...ends].map((from, i) => text.slice(from, ends[i]).trim());
}

/**
 * The lines of a paragraph or of an item of a list: `indents` are those of its first line and of all others.
 *
 * @param {string} text
 * @param {string[]} indents
 */
function wrapped(text, indents) {
  /** @type {string[]} */
  const lines = [];
  for (const sentence of sentences(text)) {
    let line = indents[lines.length === 0 ? 0 : 1];
    let isEmpty = true;
    for (const word of sentence.match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
      if (!isEmpty && line.length + 1 + word.length > MAX_COLUMNS) {
        lines.push(line);
        [line, isEmpty] = [indents[1], true];
      }
      line += isEmpty ? word : ` ${word}`;
      isEmpty = false;
    }
    lines.push(line);
  }
  return lines;
}

/**
 * The page with its paragraphs wrapped.
 *
 * @param {string} page
 */
function wrappedPage(page) {
  /** @type {string[]} */
  const lines = [];
  /** @type {{ indents: string[], text: string[] } | undefined} */
  let paragraph;
  let isCode = false;
  const end = () => {
    if (paragraph) lines.push(...wrapped(paragraph.text.join(' ').replaceAll(/\s+/g, ' '), paragraph.indents));
    paragraph = undefined;
  };
  for (const line of page.split('\n')) {
    const isFence = line.trimStart().startsWith('```');
    if (isFence) isCode = !isCode;
    const item = ITEM.exec(line);
    if (
      isFence ||
      isCode ||
      line.trim() === '' ||
      APART.test(line) ||
      (!paragraph && INDENTED_CODE.test(line) && !item)
    ) {
      end();
      lines.push(line);
    } else if (item) {
      end();
      const [, indent, mark, text] = item;
      paragraph = { indents: [indent + mark, indent + ' '.repeat(mark.length)], text: [text] };
    } else {
      const indent = line.slice(0, line.length - line.trimStart().length);
      paragraph ??= { indents: [indent, indent], text: [] };
      paragraph.text.push(line.trim());
    }
  }
  end();
  return lines.join('\n');
}

if (process.argv[2] === '--write')
  for (const path of process.argv.slice(3)) writeFileSync(path, wrappedPage(readFileSync(path, 'utf8')));
