/** The blocks of code in a page of Markdown: fenced ones with their language, indented ones without. */

export interface Block {
  /** Number of its first line in the page, from 1. */
  readonly line: number;
  /** The word after the fence; '' for indented blocks. */
  readonly language: string;
  /** Without fence and indentation; lines end with '\n'. */
  readonly text: string;
}

const INDENT = '    ';

/**
 * All blocks, in order. An indented block follows an empty line; inside a list such lines belong to the list's point,
 * and are no code.
 */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  const lines = page.split('\n');
  let isInList = false;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string;
    const [, fence, language] = /^(```+)(\S*)\s*$/.exec(line) ?? [];
    if (fence !== undefined) {
      const end = lines.indexOf(fence, i + 1);
      if (end < 0) throw new Error(`line ${i + 1}: the fence ends nowhere`);
      blocks.push({
        line: i + 2,
        language: language ?? '',
        text: lines
          .slice(i + 1, end)
          .map((row) => `${row}\n`)
          .join(''),
      });
      i = end;
    } else if (line.startsWith(INDENT) && !isInList && (lines[i - 1] ?? '') === '') {
      let end = i + 1;
      while (
        end < lines.length &&
        (lines[end]?.startsWith(INDENT) || (lines[end] === '' && lines[end + 1]?.startsWith(INDENT)))
      )
        end++;
      blocks.push({
        line: i + 1,
        language: '',
        text: lines
          .slice(i, end)
          .map((row) => `${row.slice(INDENT.length)}\n`)
          .join(''),
      });
      i = end - 1;
    } else if (/^\s*([-*]|\d+\.) /.test(line)) isInList = true;
    else if (/^\S/.test(line)) isInList = false;
  }
  return blocks;
}

/** A block's first line, by which the tests know it. */
export const firstLine = ({ text }: Block): string => text.slice(0, text.indexOf('\n'));

/** The commands of a block of the shell, continued lines joined; comments and empty lines left out. */
export function commandsOf({ text }: Block): string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.replace(/ +# .*$/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}
