/** How a page of a list is read: how many files next, and where it ends. Pure. */
import { MAX_PAGE_BYTES, type SmallFile } from '../../env/index.ts';

/** Few enough where all are of 1 MiB, many enough where all are small. */
const MIN_FILES = 16;
const MAX_FILES = 128;

/** Files to be read next when a page has these: by their mean, as many as fill it. */
export function nextLimit(files: readonly SmallFile[]): number {
  if (files.length === 0) return MIN_FILES;
  const bytes = bytesOf(files);
  const wanted = Math.ceil(((MAX_PAGE_BYTES - bytes) * files.length) / Math.max(bytes, 1));
  return Math.min(Math.max(wanted, MIN_FILES), MAX_FILES);
}

/** True when no further file belongs to the page. */
export function isFull(files: readonly SmallFile[]): boolean {
  return files.length > 0 && bytesOf(files) >= MAX_PAGE_BYTES;
}

/** At most MAX_PAGE_BYTES of contents, but one file. */
export function cutPage(files: readonly SmallFile[]): SmallFile[] {
  let bytes = 0;
  const tooMany = files.findIndex(({ contents }, i) => (bytes += contents.length) > MAX_PAGE_BYTES && i > 0);
  return files.slice(0, tooMany === -1 ? undefined : tooMany);
}

function bytesOf(files: readonly SmallFile[]): number {
  return files.reduce((sum, { contents }) => sum + contents.length, 0);
}
