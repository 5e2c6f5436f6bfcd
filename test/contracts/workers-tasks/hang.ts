/** Never answers. */
export function run(): Promise<never> {
  return new Promise(() => {});
}
