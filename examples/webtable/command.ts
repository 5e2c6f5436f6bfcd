/**
 * The example's command line, as data: which question is asked, of which store, about which pages.
 */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { parsePageUrl, type PageName } from './page-url.ts';
import type { PageTreeOptions } from './page-tree.ts';

export const USAGE = `npm run example:webtable -- [COMMAND] [OPTIONS]

Commands
  demo           load the pages twice and ask a few questions (this is the default)
  load           store the pages under the time --as-of
  page URL       a page: the newest version, or the newest at or before --as-of
  anchors URL    all links to a page, with their texts
  site HOST      all pages of a site

Options
  --pages DIR          a directory tree of HTML files; without it those of the npm packages dojo, dijit, dojox and cannon
  --site HOST          the host that DIR's files are the pages of (www.example.com)
  --dir DATA           keep the Webtable in this directory, through the embedded library
  --address HOST:PORT  keep it on a server, through Google's Node client; the variable BIGTABLE_EMULATOR_HOST says the same
  --as-of TIME         an ISO 8601 time (2026-11-21T10:00:00Z); for load also 'mtime': when each file was last changed
`;

const DEFAULT_HOST = 'www.example.com';

export type Question =
  | { readonly kind: 'demo' }
  | { readonly kind: 'load'; readonly time: number | 'mtime' | undefined }
  | { readonly kind: 'page'; readonly page: PageName; readonly atMs: number | undefined }
  | { readonly kind: 'anchors'; readonly page: PageName }
  | { readonly kind: 'site'; readonly host: string }
  | { readonly kind: 'help' };

/** Undefined: a directory for the time of the demo. */
export type Place = { readonly dir: string } | { readonly address: string } | undefined;

export interface Command {
  readonly question: Question;
  readonly place: Place;
  /** What demo and load take their pages from. */
  readonly trees: readonly PageTreeOptions[];
}

/** A command line that makes no sense; the message says why. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}

export function parseCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Command {
  const { values, positionals } = readWords(words);
  const question: Question = values.help ? { kind: 'help' } : questionOf(positionals, values['as-of']);
  if (values.dir !== undefined && values.address !== undefined) throw new UsageError('give either --dir or --address');
  const address = values.address ?? (values.dir === undefined ? environment['BIGTABLE_EMULATOR_HOST'] : undefined);
  const place = values.dir !== undefined ? { dir: values.dir } : address ? { address } : undefined;
  if (!place && question.kind !== 'demo' && question.kind !== 'help') {
    throw new UsageError(`${question.kind} needs the place of the Webtable: --dir DATA, or --address HOST:PORT`);
  }
  return { question, place, trees: treesOf(values.pages, values.site) };
}

function readWords(words: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        pages: text,
        site: text,
        dir: text,
        address: text,
        'as-of': text,
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function questionOf([kind = 'demo', about, ...rest]: readonly string[], asOf: string | undefined): Question {
  if (rest.length > 0) throw new UsageError(`too many words: ${rest.join(' ')}`);
  if (asOf !== undefined && kind !== 'load' && kind !== 'page')
    throw new UsageError(`--as-of belongs to load and page, not to ${kind}`);
  switch (kind) {
    case 'demo':
    case 'load':
      if (about !== undefined)
        throw new UsageError(`${kind} takes no argument, not "${about}"; the pages are named by --pages`);
      if (kind === 'demo') return { kind };
      return { kind, time: asOf === 'mtime' ? asOf : timeOf(asOf) };
    case 'page':
      return { kind, page: pageOf(about, kind), atMs: timeOf(asOf) };
    case 'anchors':
      return { kind, page: pageOf(about, kind) };
    case 'site':
      return { kind, host: pageOf(about, kind).host };
    default:
      throw new UsageError(`there is no command "${kind}"`);
  }
}

function pageOf(text: string | undefined, kind: string): PageName {
  if (text === undefined) throw new UsageError(`${kind} needs ${kind === 'site' ? 'a host' : 'a URL'}`);
  const page = parsePageUrl(text);
  if (!page) throw new UsageError(`"${text}" is not a URL of a page`);
  return page;
}

function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new UsageError(`"${text}" is not a time; write it like 2026-11-21T10:00:00Z`);
  return time;
}

function treesOf(pages: string | undefined, site: string | undefined): readonly PageTreeOptions[] {
  if (pages !== undefined)
    return [{ root: pages, host: site === undefined ? DEFAULT_HOST : pageOf(site, 'site').host }];
  if (site !== undefined) throw new UsageError('--site names the host of the pages that --pages gives');
  return packagePages();
}

/**
 * The pages that the example brings along, in packages that are development dependencies; the hosts are the example's
 * choice.
 */
export function packagePages(): readonly PageTreeOptions[] {
  const require = createRequire(import.meta.url);
  return [
    // 2,453 pages: tests, demos and templates. dojox brings the other two, and their pages link to one another
    {
      root: dirname(dirname(require.resolve('dojox/package.json'))),
      host: 'www.dojotoolkit.org',
      folders: ['dojo', 'dijit', 'dojox'],
    },
    // 157 pages, most of them a reference manual, which is where links are
    { root: dirname(require.resolve('cannon/package.json')), host: 'www.cannonjs.org' },
  ];
}
