/**
 * npm run test:image: does the steps of deploy/Dockerfile without Docker, in a change root, and runs what they make as
 * an engine would: as the image's user and process 1, in process, mount and network namespaces of its own, on a
 * read-only root, with a volume. docs/decisions/0034-the-image.md
 *
 * Needs Linux, root, debootstrap, unshare, nsenter, ip and mount. The base, Debian 12 with the Node that runs this
 * script, is kept in the cache of tools.mjs.
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import {
  baseRoot,
  buildEnvironment,
  lend,
  must,
  NODE_USER,
  PATH,
  placeForRoots,
  rootsMissing,
} from './lib/base-root.mjs';
import { buildOrExit } from './lib/build.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT } from './lib/repository.mjs';

const BASE_IMAGE = /^node:\d+-slim$/;
const READY_MS = 60_000;
const STOP_MS = 30_000;
const MAX_IMAGE_MIB = 30;

const missing = rootsMissing();
if (missing !== undefined) {
  console.log(missing);
  process.exit(1);
}
buildOrExit();
const { ignoredBy, parseDockerfile } = await import('../dist/test/deploy/dockerfile.js');

const report = new Report();
const { scratch, children } = placeForRoots('image');

/** @typedef {import('../dist/test/deploy/dockerfile.js').Stage} Stage */
/** @typedef {import('../dist/test/deploy/dockerfile.js').Step} Step */
/** @typedef {import('../dist/test/deploy/dockerfile.js').Image} Image */
/** @typedef {Awaited<ReturnType<typeof startContainer>>} Container */

/**
 * Copies as COPY does: the contents of a folder, a file into a folder or under a name. `isKept` sees paths relative to
 * `from`.
 *
 * @param {string} from
 * @param {Extract<Step, { kind: 'copy' }>} step
 * @param {string} root
 * @param {string} workdir
 * @param {(path: string) => boolean} [isKept]
 */
function copyInto(from, { sources, target }, root, workdir, isKept) {
  const inside = resolve(workdir, target);
  const many = sources.length > 1 || target.endsWith('/');
  for (const source of sources) {
    const path = join(from, source);
    if (!existsSync(path)) throw new Error(`COPY: ${source} is not there`);
    const isFolder = statSync(path).isDirectory();
    const to = join(root, inside, !isFolder && (many || existsSync(join(root, inside))) ? basename(source) : '');
    mkdirSync(isFolder ? to : dirname(to), { recursive: true });
    cpSync(path, to, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (name) => isKept === undefined || isKept(name.slice(from.length).replace(/^\/+/, '')),
    });
  }
}

/** @param {Step} step */
function textOf(step) {
  if (step.kind === 'run') return step.command;
  if (step.kind === 'workdir') return step.path;
  return step.kind === 'env' ? step.name : [...step.sources, step.target].join(' ');
}

/**
 * Does the steps of a stage on a copy of the base; returns its root.
 *
 * @param {Stage} stage
 * @param {number} number
 * @param {string} base
 * @param {Map<string | number, string>} roots The roots of the stages before, by name or number.
 */
async function buildStage(stage, number, base, roots) {
  if (!BASE_IMAGE.test(stage.base)) throw new Error(`the base ${stage.base} is not known here`);
  const root = join(scratch, `stage-${number}`);
  await must('copying the base', 'cp', ['-a', base, root]);
  const isIgnored = ignoredBy(readFileSync(join(ROOT, '.dockerignore'), 'utf8'));
  /** @type {Record<string, string | undefined>} */
  const environment = { ...buildEnvironment(), PATH, HOME: '/root' };
  let workdir = '/';
  let lent = false;
  for (const step of stage.steps) {
    const start = performance.now();
    if (step.kind === 'workdir') {
      workdir = step.path;
      mkdirSync(join(root, workdir), { recursive: true });
    } else if (step.kind === 'env') environment[step.name] = step.value;
    else if (step.kind === 'copy') {
      if (step.from === undefined) copyInto(ROOT, step, root, workdir, (path) => path === '' || !isIgnored(path));
      else
        copyInto(roots.get(step.from) ?? fail(`COPY --from=${step.from}: there is no such stage`), step, root, workdir);
    } else {
      if (!lent) lend(root);
      lent = true;
      const shell = `mount -t proc proc ${root}/proc && exec chroot ${root} /bin/sh -c 'cd "$0" && eval "$1"' "$0" "$1"`;
      await must(
        `RUN ${step.command}`,
        'unshare',
        ['--mount', '--pid', '--fork', 'sh', '-c', shell, workdir, step.command],
        { env: environment },
      );
    }
    console.log(`${stage.name ?? 'image'}: ${step.kind} ${textOf(step)} (${Math.round(performance.now() - start)} ms)`);
  }
  return root;
}

/**
 * @param {string} why
 * @returns {never}
 */
function fail(why) {
  throw new Error(why);
}

/**
 * The environment of the image's processes: what its own ENV steps set, and nothing of this machine.
 *
 * @param {Image} image
 */
const environmentOf = ({ user, environment }) => ({ PATH, HOME: `/home/${user}`, ...environment });
/** @param {Image} image */
const userOf = ({ user }) => (user === NODE_USER.name ? NODE_USER.id : fail(`the user ${user} is not known here`));

/**
 * Starts the image on a read-only root with `volume` at its only volume, as process 1 of its namespaces, with loopback
 * up. Returns what one does with a container.
 *
 * @param {string} root
 * @param {Image} image
 * @param {string} volume
 */
async function startContainer(root, image, volume) {
  const id = userOf(image);
  const [mountPoint] = image.volumes;
  const script = [
    'ip link set lo up',
    `mount --bind ${root} ${root}`,
    `mount --bind ${volume} ${root}${mountPoint}`,
    `mount -t proc proc ${root}/proc`,
    `mount -o remount,bind,ro ${root}`,
    `exec chroot --userspec=${id}:${id} ${root} /bin/sh -c 'cd "$0" && exec "$@"' "$@"`,
  ].join(' && ');
  const words = [
    '--mount',
    '--pid',
    '--net',
    '--fork',
    '--kill-child',
    'sh',
    '-c',
    script,
    'sh',
    image.workdir,
    ...image.entrypoint,
    ...image.command,
  ];
  const child = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'pipe'], env: environmentOf(image) });
  children.add(child);
  /** @type {Promise<NodeJS.Signals | number | null>} */
  const ended = new Promise((done) => child.once('close', (code, signal) => done(signal ?? code))).finally(() =>
    children.delete(child),
  );
  let output = '';
  /** @type {Promise<void>} */
  const ready = new Promise((done, refuse) => {
    const timer = setTimeout(() => refuse(new Error(`not ready after ${READY_MS} ms:\n${output}`)), READY_MS);
    ended.then((status) => refuse(new Error(`ended with ${status} before it was ready:\n${output}`)));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        if (!/^listening on /m.test(output)) return;
        clearTimeout(timer);
        done();
      });
    }
  });
  await ready;
  // the child of unshare is process 1 inside
  const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0]);
  /** @param {string[]} command */
  const within = (command) =>
    capture(
      'nsenter',
      [
        '--target',
        String(pid),
        '--mount',
        '--pid',
        '--net',
        '--root',
        `--wd=${root}${image.workdir}`,
        '--setuid',
        String(id),
        '--setgid',
        String(id),
        ...command,
      ],
      { timeoutMs: READY_MS, env: environmentOf(image) },
    );
  return {
    pid,
    output: () => output,
    within,
    /** The signal that an engine sends, and SIGKILL when it is not heard. Returns the exit status, or the signal. */
    async stop() {
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      process.kill(pid, image.stopSignal);
      const status = await ended;
      clearTimeout(timer);
      return status;
    },
  };
}

/** @param {number} pid */
function statusOf(pid) {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  /** @param {string} name */
  const field = (name) => new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(text)?.[1] ?? '';
  return {
    uid: Number(field('Uid').split(/\s+/)[0]),
    innermostPid: Number(field('NSpid').split(/\s+/).at(-1)),
    capabilities: field('CapEff'),
  };
}

/** @param {string} folder */
function mebibytesOf(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(entry.parentPath ?? entry.path, entry.name)).size;
  return bytes / 2 ** 20;
}

/** @type {{ root: string, image: Image } | undefined} */
let built;
await report.section('the steps of deploy/Dockerfile', async () => {
  const stages = parseDockerfile(readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8'));
  const base = await baseRoot(scratch);
  /** @type {Map<string | number, string>} */
  const roots = new Map();
  let root = base;
  for (const [number, stage] of stages.entries()) {
    root = await buildStage(stage, number, base, roots);
    roots.set(stage.name ?? number, root);
  }
  const size = mebibytesOf(join(root, 'opt/edubba'));
  report.check(
    size < MAX_IMAGE_MIB,
    `they make an image, with less than ${MAX_IMAGE_MIB} MiB upon its base`,
    `${size.toFixed(1)} MiB`,
  );
  const needless = [
    'opt/edubba/src',
    'opt/edubba/test',
    'opt/edubba/node_modules/typescript',
    'opt/edubba/node_modules/esbuild',
    'build',
  ].filter((path) => existsSync(join(root, path)));
  report.check(needless.length === 0, 'it holds neither sources nor compilers', needless.join(' '));
  built = { root, image: stages.at(-1)?.image ?? fail('deploy/Dockerfile has no stage') };
});

if (built) {
  const { root, image } = built;
  const { healthcheck = fail('deploy/Dockerfile has no HEALTHCHECK') } = image;
  const volume = join(scratch, 'volume');
  // a new volume gets what the image has there, its owner and mode too
  await must('the volume', 'cp', ['-a', join(root, image.volumes[0]), volume]);
  await report.section('a container', async () => {
    const first = await startContainer(root, image, volume);
    const { uid, innermostPid, capabilities } = statusOf(first.pid);
    report.check(
      uid === NODE_USER.id && innermostPid === 1 && /^0+$/.test(capabilities),
      'the server is process 1, not root, and without capabilities',
      `user ${uid}, process ${innermostPid}, capabilities ${capabilities}`,
    );
    /** @param {Container} container */
    const health = (container) =>
      container.within(['timeout', '--signal=KILL', String(healthcheck.timeoutMs / 1000), ...healthcheck.command]);
    const healthy = await health(first);
    report.check(healthy.status === 0, 'its health check says that it is healthy', healthy.err);
    /** @type {(container: Container, ...words: string[]) => ReturnType<Container['within']>} */
    const client = (container, ...words) =>
      container.within(['edubba', '--address', `127.0.0.1:${image.ports[0]}`, ...words]);
    const wrote = [
      await client(first, 'createtable', 't', 'families=f'),
      await client(first, 'set', 't', 'row', 'f:q=kept'),
    ];
    report.check(
      wrote.every(({ status }) => status === 0),
      'a row is written',
      wrote
        .map(({ err }) => err)
        .join('')
        .trim(),
    );
    const read = await client(first, 'read', 't');
    report.check(read.out.includes('kept'), 'and read', read.err);
    const outside = await first.within(['touch', '/opt/edubba/x']);
    report.check(outside.status !== 0, 'its root cannot be written to', outside.err.trim());
    process.kill(first.pid, 'SIGSTOP');
    const hanging = await health(first);
    process.kill(first.pid, 'SIGCONT');
    report.check(hanging.status !== 0, 'its health check says so when it hangs');
    const again = await health(first);
    report.check(again.status === 0, 'and when it goes on', again.err);
    const status = await first.stop();
    report.check(status === 0, `${image.stopSignal} ends it with status 0`, `${status}: ${first.output().slice(-500)}`);

    const second = await startContainer(root, image, volume);
    const kept = await client(second, 'read', 't');
    report.check(kept.out.includes('kept'), 'another container has the data of the volume', kept.err);
    await second.stop();
  });
}
report.close();
process.exit();
