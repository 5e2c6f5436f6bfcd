/**
 * Sizes for people who read, such as memory and progress. Settings, which are read back, have an exact form of their
 * own.
 */

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'];

/** Three digits or a whole number, in the unit that fits: 1023 bytes, 4 KiB, 12.3 GiB, 1024 TiB. */
export function roughBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  let size = bytes / 1024;
  let unit = 0;
  for (; Math.round(size) >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024;
  return `${size < 1000 ? Number(size.toPrecision(3)) : Math.round(size)} ${UNITS[unit]}`;
}
