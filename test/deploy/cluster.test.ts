/**
 * deploy/cluster fits the program: its options, settings, ports and paths. test/etcd/deployed.test.ts runs its command
 * lines.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { documents, output, temporaryDirectory } from '../cli/run.ts';
import { blocksOf } from '../readme/markdown.ts';
import { readCompose, unknownKeys } from './compose.ts';
import { analyze, assertKnown, noSystemd, parseUnit, read, ROOT, theImage } from './files.ts';

const FOLDER = 'deploy/cluster';

/** What the program understands: settings by their keys. */
async function settingsOf(words: readonly string[], environment: Readonly<Record<string, string>>) {
  const text = await output(['settings', '--json', ...words], environment);
  return Object.fromEntries(documents(text).map(({ setting, value }) => [setting, String(value)]));
}

describe('compose.yaml of a cluster', () => {
  const compose = readCompose(`${FOLDER}/compose.yaml`);
  const { services, volumes } = compose;
  const all = Object.entries(services);
  const image = theImage();
  const processes = all.filter(([, { command }]) => ['master', 'tabletserver'].includes(command?.[0] ?? ''));
  const members = all.filter(([, service]) => service.image.includes('/etcd:'));
  const settings = ([, { command = [], environment }]: (typeof all)[number]) =>
    settingsOf(command.slice(1), { ...image.environment, ...environment });

  test('has three members of etcd, two masters and three tablet servers, with keys that exist', () => {
    assert.deepEqual(unknownKeys(compose), []);
    const roles = processes.map(([, { command }]) => command?.[0]);
    assert.deepEqual(roles, [...Array(2).fill('master'), ...Array(3).fill('tabletserver')]);
    assert.equal(members.length, 3);
    const { build } = services['secret'] ?? assert.fail('no service secret');
    assert.ok(existsSync(join(ROOT, FOLDER, build?.context ?? '', build?.dockerfile ?? '')));
  });

  test('is published to this machine alone, each tablet server on a port of its own', () => {
    const ports = all.flatMap(([, service]) => service.ports ?? []);
    const [port] = image.ports;
    assert.deepEqual(
      ports,
      [8086, 8087, 8088].map((own) => `127.0.0.1:${own}:${port}`),
    );
  });

  test('options exist, and others reach each process by the name of its service', async () => {
    for (const [name, service] of processes) {
      await assertKnown(service.command ?? []);
      const found = await settings([name, service]);
      const port = /^0\.0\.0\.0:(\d+)$/.exec(found['cluster-address'] ?? '')?.[1];
      assert.equal(found['cluster-advertise'], `${name}:${port}`);
      assert.equal(found['lock'], `etcd://${members.map(([member]) => member).join(',')}`);
    }
  });

  test('the members of etcd know one another, and are of the release that is tested', () => {
    const names = members.map(([name]) => name);
    const release = /etcd\/server\/v3 (v[\d.]+)/.exec(read('test/etcd/server/go.mod'))?.[1];
    for (const [name, { environment = {}, image: from, volumes: mounted }] of members) {
      assert.equal(from, `quay.io/coreos/etcd:${release}`);
      assert.equal(environment['ETCD_NAME'], name);
      const peers = names.map((each) => `${each}=http://${each}:2380`).join(',');
      assert.equal(environment['ETCD_INITIAL_CLUSTER'], peers);
      assert.equal(environment['ETCD_INITIAL_ADVERTISE_PEER_URLS'], `http://${name}:2380`);
      assert.equal(environment['ETCD_ADVERTISE_CLIENT_URLS'], `http://${name}:2379`);
      assert.deepEqual(mounted, [`${name}:${environment['ETCD_DATA_DIR']}`]);
    }
  });

  test('all processes share a volume, which has the store and the secret', async () => {
    const [path = ''] = image.volumes;
    for (const one of processes) {
      const { files, 'cluster-secret-file': secret } = await settings(one);
      assert.ok(files?.startsWith(`${path}/`) && secret?.startsWith(`${path}/`));
      assert.deepEqual(one[1].volumes, [`data:${path}`]);
    }
    assert.deepEqual(services['secret']?.volumes, [`data:${path}`]);
    const named = all.flatMap(([, service]) => service.volumes?.map((volume) => volume.split(':')[0] ?? '') ?? []);
    assert.deepEqual(new Set(named), new Set(Object.keys(volumes)));
  });

  test('the secret is made once, where the processes look for it, for their user alone', async (t) => {
    const folder = await temporaryDirectory(t);
    const [path = ''] = image.volumes;
    const code = services['secret']?.command?.[0] ?? '';
    const file = processes[0]?.[1].environment?.['EDUBBA_CLUSTER_SECRET_FILE'] ?? '';
    const secrets = [1, 2].map(() => {
      const { status, stderr } = spawnSync(process.execPath, ['-e', code.replaceAll(`${path}/`, `${folder}/`)]);
      assert.equal(status, 0, String(stderr));
      return readFileSync(file.replace(path, folder), 'utf8');
    });
    assert.match(secrets[0] ?? '', /^[0-9a-f]{64}$/);
    assert.equal(secrets[1], secrets[0]);
    if (process.platform !== 'win32') assert.equal(statSync(file.replace(path, folder)).mode & 0o777, 0o600);
  });

  test('processes wait for etcd and the secret, and the client for a server and a master', () => {
    const started = Object.fromEntries(members.map(([name]) => [name, { condition: 'service_healthy' }]));
    for (const [, service] of processes)
      assert.deepEqual(service.depends_on, { secret: { condition: 'service_completed_successfully' }, ...started });
    const client = services['client'] ?? assert.fail('no service client');
    assert.deepEqual(Object.keys(client.depends_on ?? {}), ['tabletserver1', 'master1']);
    assert.deepEqual(client.environment, { BIGTABLE_EMULATOR_HOST: `tabletserver1:${image.ports[0]}` });
  });
});

for (const role of ['master', 'tabletserver'])
  describe(`the unit of systemd of a ${role}`, () => {
    const text = read(`${FOLDER}/edubba-${role}.service`);
    const unit = parseUnit(text);
    const words = (unit.get('ExecStart')?.[0] ?? '').split(' ');

    test('its options exist, and with the settings of README it lacks nothing', async (t) => {
      await assertKnown(words.slice(1));
      const blocks = blocksOf(read('deploy/README.md')).map((block) => block.text);
      const settings = blocks.find((block) => block.startsWith('lock = ')) ?? assert.fail('no settings');
      const file = join(await temporaryDirectory(t), 'cluster.toml');
      writeFileSync(file, settings);
      const own = blocks
        .join('\n')
        .match(new RegExp(`echo (EDUBBA_CLUSTER_ADDRESS=.*) > ${unit.get('EnvironmentFile')?.[0]}`))?.[1];
      const environment = Object.fromEntries(
        [own ?? assert.fail('no address'), ...(unit.get('Environment') ?? [])].map(
          (each) => each.split('=') as [string, string],
        ),
      );
      const found = await settingsOf(['--settings', file], environment);
      assert.match(found['cluster-address'] ?? '', /^10\.0\.0\.\d+:\d+$/);
      const [credential] = unit.get('LoadCredential')?.[0]?.split(':') ?? [];
      assert.ok(found['cluster-secret-file']?.endsWith(`%d/${credential}`));
      assert.equal(words[words.indexOf('--settings') + 1], '/etc/edubba/cluster.toml');
    });

    test('is restricted as the unit of one server is', () => {
      const restrictions = (of: string): string => of.slice(of.indexOf('# What the server does not need'));
      assert.equal(restrictions(text), restrictions(read('deploy/edubba.service')));
      assert.equal(
        unit.get('TimeoutStopSec')?.[0],
        parseUnit(read('deploy/edubba.service')).get('TimeoutStopSec')?.[0],
      );
    });

    test('systemd finds nothing wrong with it nor with the drop-ins, and little that it is exposed to', {
      skip: noSystemd,
    }, async (t) => {
      const path = join(await temporaryDirectory(t), `edubba-${role}.service`);
      const dropIns = blocksOf(read('deploy/README.md')).filter((block) => block.text.startsWith('[Service]'));
      assert.equal(dropIns.length, 2);
      for (const more of [...dropIns.map((block) => block.text), '']) {
        writeFileSync(path, `${text.replace(words[0] as string, join(ROOT, 'bin/edubba'))}\n${more}`);
        assert.deepEqual(analyze(['verify', path]), { status: 0, said: '' });
      }
      const { status, said } = analyze(['security', '--offline=true', '--threshold=15', path]);
      assert.equal(status, 0, said);
    });
  });
