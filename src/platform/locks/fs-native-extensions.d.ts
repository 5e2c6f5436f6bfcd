/** The one function of this package that the directory lock uses (the package has no types). */
declare module 'fs-native-extensions' {
  /**
   * Takes a lock on the whole open file, which belongs to this open and ends with it; false where another open holds
   * one that excludes it. Default: exclusive.
   */
  export function tryLock(fd: number, options?: { readonly shared: boolean }): boolean;
}
