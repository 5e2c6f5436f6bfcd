/**
 * Reads a Dockerfile as far as ours go, so that its steps can be checked and run without Docker. What it does not know
 * it refuses, with the line: a step that was passed over would make the check worthless.
 */

export type Step =
  | { readonly kind: 'run'; readonly command: string }
  | {
      readonly kind: 'copy';
      readonly from: string | undefined;
      readonly sources: readonly string[];
      readonly target: string;
    }
  | { readonly kind: 'env'; readonly name: string; readonly value: string }
  | { readonly kind: 'workdir'; readonly path: string };

export interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly steps: readonly Step[];
  /** The settings with which a container of this stage runs. */
  readonly image: Image;
}

export interface Image {
  readonly user: string;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly ports: readonly number[];
  readonly stopSignal: string;
  readonly healthcheck: { readonly command: readonly string[]; readonly timeoutMs: number } | undefined;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

type Building = {
  base: string;
  name: string | undefined;
  steps: Step[];
  image: { -readonly [K in keyof Image]: Image[K] };
};

/** Fails with an Error that names the line of what it does not know. */
export function parseDockerfile(text: string): Stage[] {
  const stages: Building[] = [];
  for (const { line, keyword, rest } of instructions(text)) {
    const fail = (why: string): never => {
      throw new Error(`Dockerfile, line ${line}: ${why}`);
    };
    if (keyword === 'FROM') {
      const [, base, name] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? fail(`FROM IMAGE [AS NAME] is wanted, not ${rest}`);
      stages.push({
        base: base as string,
        name,
        steps: [],
        image: {
          user: 'root',
          workdir: '/',
          environment: {},
          volumes: [],
          ports: [],
          stopSignal: 'SIGTERM',
          healthcheck: undefined,
          entrypoint: [],
          command: [],
        },
      });
      continue;
    }
    addTo(stages.at(-1) ?? fail(`${keyword} stands before FROM`), keyword, rest, fail);
  }
  return stages;
}

function addTo(stage: Building, keyword: string, rest: string, fail: (why: string) => never): void {
  const { steps, image } = stage;
  if (keyword !== 'RUN' && rest.includes('$')) fail('variables are not read here');
  switch (keyword) {
    case 'RUN':
      if (rest.startsWith('[') || rest.startsWith('--')) fail('RUN takes a plain command of the shell here');
      steps.push({ kind: 'run', command: rest });
      return;
    case 'COPY': {
      const [, from, words = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(rest) ?? [];
      const paths = words.split(/ +/);
      if (paths.length < 2 || paths.some((path) => path.startsWith('-') || path.startsWith('[')))
        fail(`COPY [--from=STAGE] SOURCE… TARGET is wanted, not ${rest}`);
      steps.push({ kind: 'copy', from, sources: paths.slice(0, -1), target: paths.at(-1) as string });
      return;
    }
    case 'ENV': {
      const [, name, value] = /^(\w+)=(\S+)$/.exec(rest) ?? fail(`ENV NAME=VALUE is wanted, not ${rest}`);
      steps.push({ kind: 'env', name: name as string, value: value as string });
      image.environment = { ...image.environment, [name as string]: value as string };
      return;
    }
    case 'WORKDIR':
      if (!rest.startsWith('/')) fail('WORKDIR takes a full path here');
      steps.push({ kind: 'workdir', path: rest });
      image.workdir = rest;
      return;
    case 'USER':
      image.user = rest;
      return;
    case 'VOLUME':
      if (!rest.startsWith('/')) fail('VOLUME takes a full path here');
      image.volumes = [...image.volumes, rest];
      return;
    case 'EXPOSE':
      image.ports = [
        ...image.ports,
        ...rest
          .split(/ +/)
          .map((word) => (/^\d+$/.test(word) ? Number(word) : fail(`EXPOSE takes numbers here, not ${word}`))),
      ];
      return;
    case 'STOPSIGNAL':
      image.stopSignal = rest;
      return;
    case 'HEALTHCHECK': {
      const [, command] =
        /^(?:--(?:interval|timeout|start-period)=\d+s |--retries=\d+ )*CMD (.*)$/.exec(rest) ??
        fail(`HEALTHCHECK [OPTIONS] CMD […] is wanted, not ${rest}`);
      const [, seconds] = /--timeout=(\d+)s /.exec(rest) ?? fail('HEALTHCHECK needs a --timeout');
      image.healthcheck = { command: wordsOf(command as string, fail), timeoutMs: Number(seconds) * 1000 };
      return;
    }
    case 'ENTRYPOINT':
      image.entrypoint = wordsOf(rest, fail);
      return;
    case 'CMD':
      image.command = wordsOf(rest, fail);
      return;
    default:
      fail(`${keyword} is not known here`);
  }
}

/** A list of words as JSON: the form that no shell stands before, so that signals reach the program. */
function wordsOf(text: string, fail: (why: string) => never): string[] {
  let words: unknown;
  try {
    words = JSON.parse(text);
  } catch {
    fail(`a list of words as JSON is wanted, not ${text}`);
  }
  return Array.isArray(words) && words.every((word) => typeof word === 'string')
    ? (words as string[])
    : fail(`a list of words as JSON is wanted, not ${text}`);
}

/** Instructions without comments, continued lines joined. */
function* instructions(text: string): Generator<{ line: number; keyword: string; rest: string }> {
  let begun: { line: number; text: string } | undefined;
  for (const [i, raw] of text.split('\n').entries()) {
    const row = raw.trim();
    if (row === '' || row.startsWith('#')) continue;
    begun = { line: begun?.line ?? i + 1, text: `${begun?.text ?? ''}${row.replace(/\\$/, '')}` };
    if (row.endsWith('\\')) continue;
    const [, keyword = '', rest = ''] = /^(\S+)\s*(.*)$/.exec(begun.text) ?? [];
    yield { line: begun.line, keyword, rest: rest.trim() };
    begun = undefined;
  }
  if (begun) throw new Error(`Dockerfile, line ${begun.line}: the last line is continued by nothing`);
}

/**
 * True when the lines of a .dockerignore keep a path (with forward slashes) out of the build's context. `!` is
 * refused.
 */
export function ignoredBy(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  const patterns = rules.map((rule) => {
    if (/[![\]?\\]/.test(rule)) throw new Error(`.dockerignore: ${rule} is not read here`);
    const parts = rule.split('/').filter((part) => part !== '');
    const source = parts
      .map((part) => (part === '**' ? '(?:[^/]+/)*' : `${part.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}/`))
      .join('');
    return new RegExp(`^${source}`);
  });
  return (path) => patterns.some((pattern) => pattern.test(`${path}/`));
}
