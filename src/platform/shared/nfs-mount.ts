/**
 * How a directory is mounted, as far as it concerns what one machine sees of the others. An NFS client remembers the
 * content of directories for up to a minute, so that a list does not show what another machine has just created; no
 * self-test on one machine can find that out.
 */

/** `mountInfo`: the text of /proc/self/mountinfo. Returns what is wrong with the mount, or undefined. */
export function mountProblem(mountInfo: string, directory: string): string | undefined {
  let point = '';
  let problem: string | undefined;
  for (const line of mountInfo.split('\n')) {
    const [mount, type, , options = ''] = line.split(' - ').flatMap((half, i) => (i === 0 ? [half] : half.split(' ')));
    const path = unescaped(mount?.split(' ')[4] ?? '');
    // of two mounts at one point the later one is seen
    const isAbove = path === '/' || directory === path || directory.startsWith(`${path}/`);
    if (path === '' || !isAbove || path.length < point.length) continue;
    point = path;
    problem = /^nfs4?$/.test(type ?? '') ? cacheProblem(path, options.split(',')) : undefined;
  }
  return problem;
}

function cacheProblem(path: string, options: readonly string[]): string | undefined {
  if (options.includes('noac') || options.includes('acdirmax=0')) return undefined;
  return `${path} is mounted by NFS with a cache of directories; mount it with the option actimeo=0`;
}

/** The system writes spaces and the like in octal. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
