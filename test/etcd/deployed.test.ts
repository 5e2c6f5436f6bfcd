/**
 * The command lines of deploy/: a master and a tablet server with the words, variables and settings of the pods, the
 * containers and the units, on a real etcd. Only addresses and paths are others.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { connect, RowMutation } from '../../src/embedded/index.ts';
import { Child, temporaryDirectory } from '../cli/run.ts';
import { readCompose } from '../deploy/compose.ts';
import { parseUnit, read, theImage } from '../deploy/files.ts';
import { FOLDER, kustomization, Manifests } from '../deploy/kubernetes.ts';
import { blocksOf } from '../readme/markdown.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { newPrefix } from './fixtures.ts';
import { until } from './until.ts';

interface Process {
  /** The first is the command. */
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

interface Form {
  readonly master: Process;
  readonly tabletServer: Process;
  /** The file of settings that they name; '' for none. */
  readonly settings: string;
}

function pods(): Form {
  const manifests = new Manifests();
  const pod = (name: string): Process => {
    const { env = [] } = manifests.container(name);
    const own = env.flatMap(({ name: variable, value }) => (value === undefined ? [] : [[variable, value]]));
    return { words: manifests.words(name), environment: { ...theImage().environment, ...Object.fromEntries(own) } };
  };
  const settings = read(`${FOLDER}/${kustomization().configMapGenerator[0]?.files[0]}`);
  return { master: pod('edubba-master'), tabletServer: pod('edubba-tabletserver'), settings };
}

function containers(): Form {
  const { services } = readCompose('deploy/cluster/compose.yaml');
  const container = (name: string): Process => {
    const { command = [], environment } = services[name] ?? assert.fail(name);
    return { words: command, environment: { ...theImage().environment, ...environment } };
  };
  return { master: container('master1'), tabletServer: container('tabletserver1'), settings: '' };
}

function units(): Form {
  const blocks = blocksOf(read('deploy/README.md')).map(({ text }) => text);
  const unit = (role: string): Process => {
    const found = parseUnit(read(`deploy/cluster/edubba-${role}.service`));
    const file = new RegExp(`echo (.*) > ${found.get('EnvironmentFile')?.[0]}`).exec(blocks.join('\n'))?.[1];
    const variables = [...(found.get('Environment') ?? []), file ?? assert.fail('no file of the environment')];
    return {
      words: (found.get('ExecStart')?.[0] ?? '').split(' ').slice(1),
      environment: Object.fromEntries(variables.map((each) => each.split('=') as [string, string])),
    };
  };
  const settings = blocks.find((text) => text.startsWith('lock = ')) ?? assert.fail('no settings');
  return { master: unit('master'), tabletServer: unit('tabletserver'), settings };
}

/** Texts of a form with addresses of this machine, and paths in a folder. */
class Here {
  readonly folder: string;
  readonly #lock: string;

  private constructor(folder: string, lock: string) {
    this.folder = folder;
    this.#lock = lock;
  }

  static async make(t: TestContext): Promise<Here> {
    const folder = await temporaryDirectory(t);
    await mkdir(join(folder, 'cache'));
    await writeFile(join(folder, 'cluster.secret'), '0123456789abcdef0123456789abcdef', { mode: 0o600 });
    const etcd = await EtcdCluster.start();
    return new Here(folder, `etcd://${etcd.endpoints.join(',')}/${newPrefix()}`);
  }

  /** Ports are free ones. */
  text(text: string): string {
    return text
      .replace(/etcd:\/\/[^"]*/, this.#lock)
      .replace(/s3:\/\/[^"]*|\/data\/store/, join(this.folder, 'store'))
      .replace(/(\/secrets|\/data|%d)\/(?=cluster\.secret)/, `${this.folder}/`)
      .replace(/\/cache(?=")|%C\/edubba/, join(this.folder, 'cache'))
      .replace(/(\/settings\/edubba|\/etc\/edubba\/cluster)\.toml/, join(this.folder, 'settings.toml'))
      .replace(/(?<=[="]|^)[\w.-]+:(8086|809\d|9086)\b/, '127.0.0.1:0');
  }

  start(t: TestContext, { words, environment }: Process): Child {
    const own = Object.entries(environment).map(([name, value]) => [name, this.text(value)]);
    return new Child(
      t,
      words.map((word) => this.text(word)),
      { environment: Object.fromEntries(own) },
    );
  }
}

/** What a process answers to a probe. */
async function probe({ out }: Child, path: string): Promise<number> {
  const [, origin = ''] = /metrics: (http:\/\/127\.0\.0\.1:\d+)\/metrics/.exec(out) ?? assert.fail(out);
  const { status, body } = await fetch(`${origin}${path}`);
  await body?.cancel();
  return status;
}

describe('the command lines of deploy/', () => {
  for (const [name, form] of Object.entries({ pods, containers, units }))
    test(`${name} serve, answer their probes, and end in order`, async (t) => {
      const here = await Here.make(t);
      const { master, tabletServer, settings } = form();
      await writeFile(
        join(here.folder, 'settings.toml'),
        settings
          .split('\n')
          .map((line) => here.text(line))
          .join('\n'),
      );
      const children = [here.start(t, tabletServer), here.start(t, master)];
      const [address = ''] = await Promise.all(children.map((child) => child.address()));
      const database = await connect(address);
      await database.createTable('t', { families: { f: {} } });
      await database.table('t').apply(new RowMutation('a').set('f:q', 'v'));
      assert.equal((await database.table('t').get('a'))?.name, 'a');
      await database.close();
      for (const child of children) {
        assert.equal(await probe(child, '/healthz'), 200);
        // a master that has just begun has tablets that nobody serves
        await until('all tablets are served', async () => (await probe(child, '/readyz')) === 200);
      }

      for (const child of children) {
        child.process.kill('SIGTERM');
        assert.equal(await child.ended(), 0, child.err);
      }
    });
});

test('the variables of the members of etcd in compose.yaml are flags of etcd', () => {
  const { stdout } = spawnSync(process.env['EDUBBA_ETCD'] ?? '', ['--help'], { encoding: 'utf8' });
  const { services } = readCompose('deploy/cluster/compose.yaml');
  for (const member of ['etcd1', 'etcd2', 'etcd3'])
    for (const variable of Object.keys(services[member]?.environment ?? assert.fail(member))) {
      const flag = variable
        .toLowerCase()
        .replace(/^etcd_/, '--')
        .replaceAll('_', '-');
      assert.match(stdout, new RegExp(`^ +${flag} `, 'm'), variable);
    }
});
