/** The width of pages (docs/STYLE.md, "Pages"): at most 100 columns, tables, code blocks and headings apart. */

const MAX_COLUMNS = 100;
/** A line of one long link, or of one long piece of code, cannot be wrapped. */
const UNBREAKABLE = /^\s*(?:(?:[-*]|\d+\.) +)?(?:\S+|\S*`[^`]+`\S*)$/;
const EXEMPT = /^(?: {4}|\s*\||#|<)/;

/** The numbers of the lines of a page that are too wide, from 1. */
export function wideLines(text) {
  const wide = [];
  let isCode = false;
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trimStart().startsWith('```')) isCode = !isCode;
    else if (!isCode && line.length > MAX_COLUMNS && !EXEMPT.test(line) && !UNBREAKABLE.test(line)) wide.push(i + 1);
  }
  return wide;
}
