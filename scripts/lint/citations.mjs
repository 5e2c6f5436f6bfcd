/**
 * Checks that cited things exist: files of the repository by their path, targets and sections of links in pages,
 * sections that comments name, and modules that pages name as `room/module`. One line for each that does not.
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { filesUnder, ROOT } from '../lib/repository.mjs';

const FOLDERS = 'bench|bin|deploy|docs|examples|scripts|sim|src|test';
const ENDINGS = 'json|md|mjs|sh|toml|ts|yaml';
/** A path from the root of the repository. What stands for several files (`*`, `NAME`, braces) is no citation. */
const PATH = new RegExp(`(?<![\\w./@-])(?:${FOLDERS})/[\\w./-]*\\.(?:${ENDINGS})\\b(?![\\w*/])`, 'g');
/** A link of a page: [words](target). */
const LINK = /\]\(([^)\s]+)\)/g;
/**
 * docs/PAGE.md, "Words": the heading itself, one that goes on in brackets ("Words (more)"), or one of a file's section
 * (Section "words").
 */
const SECTIONS = /(docs\/[\w/-]+\.md)((?:,? (?:and )?"[^"\n]+")+)/g;
/** A page by its name alone. */
const PAGE = /(?<![\w./-])[A-Z][A-Z-]+\.md\b/g;
/** `room/module` or `room/folder/module` in a page. */
const MODULE = /`([a-z]+)\/((?:[a-z-]+\/)*[a-z0-9-]+)`/g;
/** A module that another names in a comment: file.ts, room/file.ts. */
const FILE = /(?<![\w./*{},-])(?:[a-z0-9]+\/)*[a-z][a-z0-9-]*\.ts\b/g;
const PLACEHOLDER = /[A-Z]{3,}\.|N{2,}|\.\.\./;

/**
 * The sections of a page, as its links name them.
 *
 * @param {string} text
 */
function anchors(text) {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading.replaceAll('`', ''));
  /** @param {string} words */
  const hasSection = (words) =>
    headings.some(
      (heading) => heading === words || heading.startsWith(`${words} (`) || heading === `Section "${words}"`,
    );
  /** @param {string} heading */
  const slug = (heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
  return { hasSection, slugs: new Set(headings.map(slug)) };
}

/** @param {string} room */
const isProduct = (room) => existsSync(join(ROOT, 'src', room));

/**
 * The names of all modules of a room, whatever folder they lie in.
 *
 * @param {string} room
 * @param {Map<string, Set<string>>} known
 * @returns {Set<string>}
 */
function modulesOf(room, known) {
  let modules = known.get(room);
  if (modules === undefined) {
    const names = filesUnder(join('src', room), (name) => name.endsWith('.ts')).map((path) =>
      path.slice(`src/${room}/`.length, -'.ts'.length),
    );
    modules = new Set(names.flatMap((name) => [name, basename(name)]));
    known.set(room, modules);
  }
  return modules;
}

/** @param {string} text */
function* citedPaths(text) {
  for (const { 0: path, index } of text.matchAll(PATH))
    if (!PLACEHOLDER.test(path)) yield { at: index, path: normalize(path) };
}

/**
 * @param {string} page
 * @param {string} text
 */
function* citedLinks(page, text) {
  for (const { 1: target, index } of text.matchAll(LINK)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path, anchor] = target.split('#');
    yield { at: index, path: path === '' ? page : normalize(join(dirname(page), path)), anchor };
  }
}

/**
 * `paths`: the files to look at, from the root of the repository: whatever cites, and all that may be cited by its name
 * alone.
 *
 * @param {readonly string[]} paths
 */
export function brokenCitations(paths) {
  /** @type {string[]} */
  const found = [];
  /** @type {Map<string, Set<string>>} */
  const known = new Map();
  const pageNames = new Set(paths.filter((path) => path.endsWith('.md')).map((path) => basename(path)));
  /** @type {Map<string, ReturnType<typeof anchors>>} */
  const pages = new Map();
  /** @param {string} page */
  const sectionsOf = (page) => {
    const known = pages.get(page) ?? anchors(readFileSync(join(ROOT, page), 'utf8'));
    pages.set(page, known);
    return known;
  };
  for (const path of paths) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    /** @param {number} at */
    const line = (at) => text.slice(0, at).split('\n').length;
    /** @param {string} cited */
    const exists = (cited) => existsSync(join(ROOT, cited)) || existsSync(join(ROOT, dirname(path), cited));
    for (const { at, path: cited } of citedPaths(text))
      if (!exists(cited)) found.push(`${path}:${line(at)}: cites ${cited}, which does not exist`);
    for (const { 0: page, index } of text.matchAll(PAGE))
      if (!pageNames.has(page)) found.push(`${path}:${line(index)}: cites ${page}, which does not exist`);
    for (const { 1: page, 2: sections, index } of text.matchAll(SECTIONS)) {
      for (const [, section] of sections.matchAll(/"([^"]+)"/g)) {
        if (existsSync(join(ROOT, page)) && !sectionsOf(page).hasSection(section))
          found.push(`${path}:${line(index)}: cites ${page}, "${section}", a section that does not exist`);
      }
    }
    if (path.startsWith('src/')) {
      for (const { 0: file, index } of text.matchAll(FILE)) {
        if (!paths.some((one) => one === file || one.endsWith(`/${file}`)))
          found.push(`${path}:${line(index)}: names ${file}, which does not exist`);
      }
    }
    if (!path.endsWith('.md')) continue;
    for (const { at, path: cited, anchor } of citedLinks(path, text)) {
      if (!existsSync(join(ROOT, cited))) found.push(`${path}:${line(at)}: links to ${cited}, which does not exist`);
      else if (anchor !== undefined && !sectionsOf(cited).slugs.has(anchor))
        found.push(`${path}:${line(at)}: links to ${cited}#${anchor}, a section that does not exist`);
    }
    for (const { 1: room, 2: module, index } of text.matchAll(MODULE)) {
      if (
        isProduct(room) &&
        !path.startsWith('proto/') &&
        !modulesOf(room, known).has(module) &&
        !existsSync(join(ROOT, 'src', room, module))
      ) {
        found.push(`${path}:${line(index)}: names ${room}/${module}, which is no module of src/${room}`);
      }
    }
  }
  return found;
}
