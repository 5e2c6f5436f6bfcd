/** The one call that the directory lock takes of this package (it brings no types). */
declare module 'fs-native-extensions' {
  /** Takes an exclusive lock on the whole open file, which belongs to this open and ends with it; false where another open holds it. */
  export function tryLock(fd: number): boolean;
}
