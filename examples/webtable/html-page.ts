/**
 * What the Webtable wants to know of a page: its language and its links with their texts. Pages are as the web has
 * them: nothing here fails on a broken one.
 */
import { Parser } from 'htmlparser2';

export interface Link {
  readonly href: string;
  /** White space made single blanks; may be empty. The text of an image is its alt. */
  readonly text: string;
}

export interface HtmlPage {
  /** As the page declares it ("en", "pt-BR"); undefined where it does not. */
  readonly language: string | undefined;
  readonly title: string;
  /** The href of the <base> element: links are relative to it, and it is relative to the page. */
  readonly base: string | undefined;
  readonly links: readonly Link[];
}

/** Longest text kept of one link, in bytes of UTF-8. */
const MAX_TEXT_BYTES = 1024;
const LANGUAGE = /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i;
const CHARSET = /charset\s*=\s*["']?\s*([\w.:-]+)/i;
/** A page says its encoding within so many bytes, or not at all (HTML standard). */
const CHARSET_WITHIN_BYTES = 1024;

export function parseHtml(bytes: Uint8Array): HtmlPage {
  const reader = new PageReader();
  const parser = new Parser(
    {
      onopentag: (name, attributes) => reader.open(name, attributes),
      ontext: (text) => reader.text(text),
      onclosetag: (name) => reader.close(name),
    },
    { decodeEntities: true },
  );
  parser.end(decode(bytes));
  return reader.page();
}

/** Collects what it is told by the parser, in the page's order. */
class PageReader {
  readonly #links: Link[] = [];
  #declared: string | undefined;
  #meta: string | undefined;
  #base: string | undefined;
  #title = '';
  #inTitle = false;
  #open: { readonly href: string; text: string } | undefined;

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'html') this.#declared ??= languageOf(attributes['lang'] ?? attributes['xml:lang']);
    else if (name === 'meta' && attributes['http-equiv']?.toLowerCase() === 'content-language')
      this.#meta ??= languageOf(attributes['content']);
    else if (name === 'base') this.#base ??= attributes['href'];
    else if (name === 'title') this.#inTitle = this.#title === '';
    else if (name === 'img') this.text(` ${attributes['alt'] ?? ''} `);
    else if (name === 'a') this.close('a');
    const href = attributes['href']?.trim();
    if (href === undefined) return;
    if (name === 'a') this.#open = { href, text: '' };
    else if (name === 'area') this.#links.push({ href, text: shortened(attributes['alt'] ?? '') });
  }

  text(text: string): void {
    if (this.#inTitle) this.#title += text;
    // more than is kept, since white space shrinks; no more, since a link that is never closed takes the rest of the
    // page
    else if (this.#open && this.#open.text.length < 16 * MAX_TEXT_BYTES) this.#open.text += text;
  }

  close(name: string): void {
    if (name === 'title') this.#inTitle = false;
    if (name !== 'a' || !this.#open) return;
    this.#links.push({ href: this.#open.href, text: shortened(this.#open.text) });
    this.#open = undefined;
  }

  page(): HtmlPage {
    this.close('a');
    return {
      language: this.#declared ?? this.#meta,
      title: shortened(this.#title),
      base: this.#base,
      links: this.#links,
    };
  }
}

function languageOf(text: string | undefined): string | undefined {
  const tag = text?.trim();
  return tag !== undefined && LANGUAGE.test(tag) ? tag : undefined;
}

/** White space made single blanks, cut at a whole character. */
export function shortened(text: string, maxBytes = MAX_TEXT_BYTES): string {
  const plain = text.replace(/\s+/g, ' ').trim();
  const bytes = Buffer.from(plain, 'utf8');
  if (bytes.length <= maxBytes) return plain;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end).trimEnd();
}

/**
 * By the byte order mark, else as the page says, else UTF-8 if it is that, else as Western pages without a word were
 * written.
 */
function decode(bytes: Uint8Array): string {
  const mark =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? 'utf-16le'
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? 'utf-16be'
        : undefined;
  const said = CHARSET.exec(Buffer.from(bytes.subarray(0, CHARSET_WITHIN_BYTES)).toString('latin1'))?.[1];
  for (const label of [mark, said, 'utf-8']) {
    if (label === undefined) continue;
    try {
      return new TextDecoder(label, { fatal: label === 'utf-8' }).decode(bytes);
    } catch {
      // an encoding that does not exist, or bytes that are not UTF-8
    }
  }
  return new TextDecoder('windows-1252').decode(bytes);
}
