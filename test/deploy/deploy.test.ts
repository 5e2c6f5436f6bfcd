/**
 * deploy/ and .github/ fit the program: they are read here, their options are looked up in the command's own
 * help, and the unit of systemd is checked by systemd where that is there. `npm run test:image` runs the image's steps.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { Child, output, temporaryDirectory } from '../cli/run.ts';
import { blocksOf } from '../readme/markdown.ts';
import { readCompose, unknownKeys } from './compose.ts';
import { ignoredBy, parseDockerfile } from './dockerfile.ts';
import { analyze, assertKnown, noSystemd, parseUnit, read, ROOT, theImage } from './files.ts';

const PORT = 8086;

const image = theImage();

describe('the image', () => {
  test('serves its volume on the port that it tells, not as root', async () => {
    const { entrypoint, command, environment, volumes, ports, user, stopSignal } = image;
    assert.deepEqual(entrypoint, ['edubba']);
    await assertKnown(command);
    // as the server itself understands them
    const settings = await output(['settings', ...command.slice(1)], environment);
    assert.deepEqual(volumes, [/^dir = "(.*?)"/m.exec(settings)?.[1]]);
    assert.deepEqual(ports, [Number(/^address = "0\.0\.0\.0:(\d+)"/m.exec(settings)?.[1])]);
    assert.deepEqual(ports, [PORT]);
    assert.match(settings, /^insecure-public = true /m);
    assert.notEqual(user, 'root');
    assert.equal(stopSignal, 'SIGTERM');
  });

  test('its health is asked of the probe of the server, which is on by default', async () => {
    assert.ok(image.healthcheck?.command.at(-1)?.includes("process.env.EDUBBA_METRICS_ADDRESS + '/readyz'"));
    assert.match(
      await output(['settings', ...image.command.slice(1)], image.environment),
      /^metrics-address = "127\.0\.0\.1:\d+"/m,
    );
  });

  test('is built on the Node that README recommends, in every stage', () => {
    const bases = new Set(parseDockerfile(read('deploy/Dockerfile')).map(({ base }) => base));
    const recommended = Number(/\((\d+) is recommended\)/.exec(read('README.md'))?.[1]);
    assert.ok(supportedNodes().includes(recommended));
    assert.deepEqual([...bases], [`node:${recommended}-slim`]);
  });

  test('the context has what the build needs, and neither packages nor builds of this machine', () => {
    const isIgnored = ignoredBy(read('.dockerignore'));
    const needed = [
      'package.json',
      'package-lock.json',
      '.npmrc',
      'tsconfig.json',
      'src/cli/index.ts',
      'scripts/build.mjs',
      'bin/edubba',
      'proto',
      'docs',
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
    ];
    assert.deepEqual(
      needed.filter((path) => isIgnored(path) || !existsSync(join(ROOT, path))),
      [],
    );
    assert.deepEqual(
      ['.git', 'node_modules/a', 'dist/b', 'edubba-data/c'].filter((path) => !isIgnored(path)),
      [],
    );
  });
});

describe('compose.yaml', () => {
  const compose = readCompose('deploy/compose.yaml');
  const { services, volumes } = compose;
  const server = services['edubba'] ?? assert.fail('no service edubba');

  test('its services are written with keys that exist', () => {
    assert.deepEqual(unknownKeys(compose), []);
  });

  test('builds this repository and keeps its data in a named volume', () => {
    assert.ok(existsSync(join(ROOT, 'deploy', server.build?.context ?? '', server.build?.dockerfile ?? '')));
    assert.deepEqual(
      server.volumes,
      Object.keys(volumes).map((name) => `${name}:${image.volumes[0]}`),
    );
  });

  test('is published to this machine alone', () => {
    assert.deepEqual(server.ports, [`127.0.0.1:${PORT}:${PORT}`]);
  });

  test('the client finds the server once that is healthy, and runs a command that exists', async () => {
    const client = services['client'] ?? assert.fail('no service client');
    assert.deepEqual(client.environment, { BIGTABLE_EMULATOR_HOST: `edubba:${PORT}` });
    assert.deepEqual(client.depends_on, { edubba: { condition: 'service_healthy' } });
    assert.equal(client.image, server.image);
    assert.match(await output(['--help']), new RegExp(`^  ${client.command?.[0]} `, 'm'));
  });
});

describe('the unit of systemd', () => {
  const text = read('deploy/edubba.service');
  const words = (parseUnit(text).get('ExecStart')?.[0] ?? '').split(' ');

  test('its command serves, and ends with status 0 on the signal that stops it', async (t) => {
    const directory = await temporaryDirectory(t);
    assert.ok(words[0]?.endsWith('/edubba'));
    const settings = (parseUnit(text).get('Environment')?.[0] ?? '')
      .split(' ')
      .map((setting) => setting.replace('%S', directory).replace(/:\d+$/, ':0').split('=') as [string, string]);
    const server = new Child(t, words.slice(1), { environment: Object.fromEntries(settings) });
    await server.address();
    server.process.kill(parseUnit(text).get('KillSignal')?.[0] as NodeJS.Signals);
    assert.equal(await server.ended(), 0);
    assert.ok(existsSync(join(directory, parseUnit(text).get('StateDirectory')?.[0] ?? '', 'EDUBBA')));
  });

  test('systemd finds nothing wrong with it, and little that it is exposed to', { skip: noSystemd }, async (t) => {
    const path = join(await temporaryDirectory(t), 'edubba.service');
    writeFileSync(path, text.replace(words[0] as string, join(ROOT, 'bin/edubba')));
    const verified = analyze(['verify', path]);
    assert.deepEqual(verified, { status: 0, said: '' });
    // the threshold is ten times the level: 1.5, which systemd calls OK
    const { status, said } = analyze(['security', '--offline=true', '--threshold=15', path]);
    assert.equal(status, 0, said);
  });

  test('so it is with the drop-in of deploy/README.md', { skip: noSystemd }, async (t) => {
    const block =
      blocksOf(read('deploy/README.md')).find((one) => one.text.startsWith('[Service]'))?.text ??
      assert.fail('no drop-in');
    const directory = await temporaryDirectory(t);
    writeFileSync(
      join(directory, 'edubba.service'),
      `${text.replace(words[0] as string, join(ROOT, 'bin/edubba'))}\n${block}`,
    );
    assert.deepEqual(analyze(['verify', join(directory, 'edubba.service')]), { status: 0, said: '' });
    const settings = [...block.matchAll(/^Environment=(EDUBBA_\w+)=/gm)].map(([, name]) => name as string);
    const known = read('docs/SETTINGS.md');
    assert.deepEqual(
      settings.filter((name) => !known.includes(`\`${name}\``)),
      [],
    );
    assert.ok(settings.length > 0);
  });

  test('a mistake would be found', { skip: noSystemd }, async (t) => {
    const path = join(await temporaryDirectory(t), 'edubba.service');
    writeFileSync(
      path,
      text.replace(words[0] as string, join(ROOT, 'bin/edubba')).replace('TimeoutStopSec=60', 'TimeoutStop=60'),
    );
    assert.match(analyze(['verify', path]).said, /TimeoutStop/);
  });
});

/** Majors of Node that package.json allows and .ci is run with. */
function supportedNodes(): number[] {
  const [, ...majors] = /^With Node (\d+), (\d+) or (\d+)/m.exec(read('README.md')) ?? [];
  return majors.map(Number);
}

describe('.github', () => {
  const files = (folder: string): string[] =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.yml'))
      .map((name) => `${folder}/${name}`);

  test('the workflow runs .ci/run on every Node that is supported', () => {
    const { jobs } = parse(read('.github/workflows/ci.yml')) as {
      jobs: { ci: { 'timeout-minutes': number; strategy: { matrix: { node: string[] } }; steps: { run?: string }[] } };
    };
    assert.deepEqual(jobs.ci.strategy.matrix.node.map(Number), supportedNodes());
    assert.deepEqual(
      jobs.ci.steps.flatMap(({ run }) => run ?? []),
      ['bash .ci/run'],
    );
    const run = read('.ci/run');
    const [, totalMinutes] = /^TOTAL_SECONDS=\$\(\((\d+) \* 60\)\)$/m.exec(run) ?? [];
    assert.ok(Number(totalMinutes) > 0, 'the limit of all parts of .ci/run is not found');
    assert.ok(
      Number(totalMinutes) < jobs.ci['timeout-minutes'],
      'the job is cut off before .ci/run can tell what took too long',
    );
    const limits = [...run.matchAll(/^(?:.*then| *)? *part \S+ (\d+) /gm)].map(([, seconds]) => Number(seconds));
    assert.ok(limits.length >= 18, 'the limits of the parts of .ci/run are not found');
    assert.ok(Math.max(...limits) < (Number(totalMinutes) * 60) / 2, 'one part may take most of the time of all');
  });

  test('every form of an issue has a name and fields that can be told apart', () => {
    for (const path of files('.github/ISSUE_TEMPLATE').filter((name) => !name.endsWith('/config.yml'))) {
      const { name, description, body } = parse(read(path)) as {
        name: string;
        description: string;
        body: { type: string; id?: string }[];
      };
      assert.ok(name && description, path);
      const ids = body.filter(({ type }) => type !== 'markdown').map(({ id }) => id);
      assert.ok(ids.length > 0 && !ids.includes(undefined) && new Set(ids).size === ids.length, path);
    }
  });

  test('dependabot looks where something is', () => {
    const { updates } = parse(read('.github/dependabot.yml')) as {
      updates: { 'package-ecosystem': string; directory: string }[];
    };
    const files: Record<string, string> = {
      npm: 'package-lock.json',
      docker: 'Dockerfile',
      'github-actions': '.github/workflows',
    };
    for (const { 'package-ecosystem': kind, directory } of updates)
      assert.ok(existsSync(join(ROOT, directory, files[kind] ?? assert.fail(kind))), kind);
  });
});
