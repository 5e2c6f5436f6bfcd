/** The names, copyright and texts that the licences of the packages inside dist/bundle require. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './repository.mjs';

/** @param {...string} parts */
const read = (...parts) => readFileSync(join(ROOT, ...parts), 'utf8').trim();

/**
 * The text of THIRD-PARTY.txt. `inputs`: the files that the bundle is made of, relative to the repository. Throws where
 * a package states no licence.
 *
 * @param {readonly string[]} inputs
 */
export function thirdParty(inputs) {
  const folders = [...new Set(inputs.map(folderOf))].filter((folder) => folder !== undefined).sort();
  const parts = folders.map((folder) => {
    const paths = inputs.filter((path) => folderOf(path) === folder);
    const { name, version, license } = manifestOf(folder);
    const text = licenceFiles(folder) || headComments(paths) || licenceOfSibling(folder, folders);
    if (!license || text === '') throw new Error(`${folder} is part of the bundle and states no licence`);
    return `${name} ${version}, ${license}\n\n${text}\n`;
  });
  return ['The JavaScript files beside this one contain parts of these packages.\n', ...parts].join(
    `\n${'-'.repeat(80)}\n\n`,
  );
}

/**
 * The folder of the package that the file belongs to; undefined for our own.
 *
 * @param {string} path
 */
const folderOf = (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];

/** @param {string} folder */
const manifestOf = (folder) => JSON.parse(read(folder, 'package.json'));

/**
 * The text in another package of the same repository and licence, for one that was packed without it; '' if there is
 * none.
 *
 * @param {string} folder
 * @param {readonly string[]} folders
 */
function licenceOfSibling(folder, folders) {
  const { license, repository } = manifestOf(folder);
  const sibling = folders.find((other) => {
    const manifest = manifestOf(other);
    const isSame = manifest.license === license && manifest.repository?.url === repository?.url;
    return isSame && repository?.url !== undefined && licenceFiles(other) !== '';
  });
  return sibling === undefined ? '' : licenceFiles(sibling);
}

/** @param {string} folder */
const licenceFiles = (folder) =>
  readdirSync(join(ROOT, folder))
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .map((file) => read(folder, file))
    .join('\n\n');

/**
 * The distinct comments with a copyright that the files begin with.
 *
 * @param {readonly string[]} paths
 */
function headComments(paths) {
  const comments = paths.map((path) =>
    /^(?:\/\/.*\n)+/
      .exec(read(path))?.[0]
      .replaceAll(/^\/\/ ?/gm, '')
      .trim(),
  );
  return [...new Set(comments)].filter((comment) => comment && /copyright/i.test(comment)).join('\n\n');
}
