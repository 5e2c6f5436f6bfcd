/**
 * The manifests of deploy/kubernetes: right by the schemas of Kubernetes' API, by the command's own settings, and of
 * one piece. test/etcd/deployed.test.ts runs their command lines.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { documents, output } from '../cli/run.ts';
import { assertKnown, parseUnit, read, ROOT, theImage } from './files.ts';
import { FOLDER, kustomization, Manifests, manifestsOf, NAMESPACE } from './kubernetes.ts';
import { type Manifest, mistakesIn } from './kubernetes-mistakes.ts';

const ROLES = ['edubba-tabletserver', 'edubba-master'];
const GIB = 2 ** 30;
const manifests = new Manifests();

/** Settings of a pod as the server itself understands them, by their keys. */
async function settingsOf(name: string, more: Readonly<Record<string, string>> = {}): Promise<Record<string, unknown>> {
  const words = manifests
    .words(name)
    .slice(1)
    .map((word) => word.replace('=/settings/', `=${join(ROOT, FOLDER)}/`));
  const text = await output(['settings', '--json', ...words], { ...theImage().environment, ...more });
  return Object.fromEntries(documents(text).map(({ setting, value }) => [setting, value]));
}

const portOf = (address: unknown): number => Number(/:(\d+)$/.exec(String(address))?.[1]);

/** 11Gi, in bytes. */
const bytesOf = (quantity: unknown): number => Number(/^(\d+)Gi$/.exec(String(quantity))?.[1]) * GIB;

describe('the schemas of Kubernetes', () => {
  test('find nothing wrong with the manifests', () => {
    assert.ok(manifests.all.length > 0);
    assert.deepEqual(mistakesIn(manifests.all), []);
  });

  /** The manifest of tablet servers with one change of its text. */
  const changed = (from: string, to: string): Manifest[] => {
    const text = read(`${FOLDER}/tabletserver.yaml`);
    assert.ok(text.includes(from), from);
    return manifestsOf(text.replace(from, to));
  };

  for (const { what, from, to, message } of [
    { what: 'a misspelt field', from: 'readinessProbe:', to: 'readynessProbe:', message: /"readynessProbe"/ },
    {
      what: 'a misspelt field of a probe',
      from: 'failureThreshold: 60',
      to: 'failureTreshold: 60',
      message: /"failureTreshold"/,
    },
    {
      what: 'a field at the wrong level',
      from: 'replicas: 3',
      to: 'replicas: 3\n  hostNetwork: true',
      message: /"hostNetwork"/,
    },
    {
      what: 'a field of another type',
      from: 'replicas: 3',
      to: "replicas: '3'",
      message: /'string' is not assignable to type 'number'/,
    },
    {
      what: 'a field that is missing',
      from: 'serviceName: edubba-tabletserver',
      to: '',
      message: /'serviceName' is missing/,
    },
    { what: 'a kind that is not there', from: 'kind: StatefulSet', to: 'kind: StatefullSet', message: /StatefullSet/ },
    {
      what: 'a version that is not there',
      from: 'apiVersion: policy/v1',
      to: 'apiVersion: policy/v7',
      message: /policy\/v7/,
    },
  ])
    test(`find ${what}`, () => {
      const found = mistakesIn(changed(from, to));
      assert.match(found.join('\n'), message);
      assert.equal(found.length, 1);
    });

  test('a field that stands twice is no YAML', () => {
    assert.throws(() => changed('replicas: 3', 'replicas: 3\n  replicas: 4'), /Map keys must be unique/);
  });
});

describe('kustomize', () => {
  const { resources, configMapGenerator, images } = kustomization();

  test('takes all manifests, the settings, and the image of this release', () => {
    const files = readdirSync(join(ROOT, FOLDER)).filter((name) => name !== 'kustomization.yaml');
    assert.deepEqual([...resources, ...configMapGenerator.flatMap((one) => one.files)].toSorted(), files.toSorted());
    const { version } = JSON.parse(read('package.json')) as { version: string };
    for (const role of ROLES) assert.equal(manifests.container(role).image, images[0]?.name);
    assert.equal(images[0]?.newTag, version);
  });

  const { error } = spawnSync('kubectl', ['version', '--client']);
  test('makes manifests without mistakes', { skip: error ? 'kubectl is not here' : false }, () => {
    const { stdout, stderr } = spawnSync('kubectl', ['kustomize', join(ROOT, FOLDER)], { encoding: 'utf8' });
    const made = manifestsOf(stdout);
    assert.equal(made.length, manifests.all.length + configMapGenerator.length, stderr);
    assert.deepEqual(mistakesIn(made), []);
  });
});

for (const role of ROLES)
  describe(`the pods of ${role}`, () => {
    const { spec } = manifests.get('StatefulSet', role);
    const pod = manifests.pod(role);
    const container = manifests.container(role);
    const portNamed = (name: unknown): number | undefined =>
      container.ports?.find((one) => one.name === name)?.containerPort;

    test('their options exist, and their settings go together', async () => {
      const words = manifests.words(role);
      await assertKnown(words);
      assert.equal(`edubba-${words[0]}`, role);
      // and with the variables that Kubernetes sets for the service "edubba"
      const more = {
        EDUBBA_SERVICE_HOST: '10.0.0.1',
        EDUBBA_SERVICE_PORT_CLIENTS: '8086',
        EDUBBA_PORT: 'tcp://10.0.0.1:8086',
      };
      assert.deepEqual(await settingsOf(role, more), await settingsOf(role));
    });

    test('other processes reach each by its name, also while it is not ready', async () => {
      const settings = await settingsOf(role);
      const port = portOf(settings['cluster-address']);
      assert.equal(settings['cluster-advertise'], `${role}-0.${spec?.serviceName}.${NAMESPACE}.svc:${port}`);
      assert.equal(settings['cluster-address'], `0.0.0.0:${port}`);
      assert.equal(portNamed('cluster'), port);
      const service = manifests.get('Service', spec?.serviceName ?? '').spec;
      assert.deepEqual(service?.ports, [{ name: 'cluster', port, targetPort: 'cluster' }]);
      assert.equal(service?.clusterIP, 'None');
      assert.equal(service?.publishNotReadyAddresses, true);
      assert.deepEqual(service?.selector, spec?.template.metadata?.labels);
    });

    test('probes come from outside of the container', async () => {
      const { 'metrics-address': address } = await settingsOf(role);
      assert.equal(address, `0.0.0.0:${portNamed('metrics')}`);
      const { startupProbe, livenessProbe, readinessProbe } = container;
      assert.deepEqual(
        [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet),
        ['/healthz', '/healthz', '/readyz'].map((path) => ({ path, port: 'metrics' })),
      );
      for (const path of ['/healthz', '/readyz']) assert.ok(read('docs/METRICS.md').includes(`\`${path}\``));
    });

    test('what they select, spread and protect is themselves', () => {
      const labels = spec?.template.metadata?.labels;
      assert.deepEqual(spec?.selector.matchLabels, labels);
      assert.deepEqual(manifests.get('PodDisruptionBudget', role).spec?.selector?.matchLabels, labels);
      const [term] = pod.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
      assert.deepEqual(term?.podAffinityTerm.labelSelector?.matchLabels, labels);
      const admitted = manifests.get('NetworkPolicy', 'edubba').spec?.podSelector?.matchLabels ?? {};
      assert.deepEqual({ ...admitted, ...labels }, labels);
    });

    test('files are where the settings look for them', async () => {
      const {
        'cluster-secret-file': secret,
        'read-cache-dir': cache,
        'read-cache-bytes': cacheBytes,
      } = await settingsOf(role);
      const mounts = new Map(container.volumeMounts?.map(({ name, mountPath }) => [name, mountPath]));
      assert.deepEqual([...mounts.keys()].toSorted(), pod.volumes?.map(({ name }) => name).toSorted());
      assert.equal(secret, `${mounts.get('secrets')}/cluster.secret`);
      assert.ok(
        container.args?.includes(
          `--settings=${mounts.get('settings')}/${kustomization().configMapGenerator[0]?.files[0]}`,
        ),
      );
      const volumes = new Map(pod.volumes?.map((volume) => [volume.name, volume]));
      // the group of the pod may read it then, and nobody else
      assert.equal(volumes.get('secrets')?.secret?.defaultMode, 0o400);
      assert.equal(volumes.get('settings')?.configMap?.name, kustomization().configMapGenerator[0]?.name);
      const limit = volumes.get('cache')?.emptyDir?.sizeLimit;
      if (role === 'edubba-master') return assert.equal(limit, undefined);
      assert.equal(cache, mounts.get('cache'));
      assert.ok(bytesOf(limit) > Number(cacheBytes));
      assert.equal(container.resources?.requests?.['ephemeral-storage'], limit);
    });

    test('they run as the user of the image, who may change nothing but the cache', () => {
      assert.equal(theImage().user, 'node');
      const { runAsUser, runAsGroup, fsGroup, runAsNonRoot } = pod.securityContext ?? {};
      assert.deepEqual(
        { runAsUser, runAsGroup, fsGroup, runAsNonRoot },
        { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, runAsNonRoot: true },
      );
      assert.equal(container.securityContext?.readOnlyRootFilesystem, true);
      for (const { name, readOnly } of container.volumeMounts ?? [])
        assert.equal(readOnly, name === 'cache' ? undefined : true);
    });
  });

describe('the service for clients', () => {
  const { spec } = manifests.get('Service', 'edubba');

  test('leads to the tablet servers, on the port that they serve', async () => {
    const { address } = await settingsOf('edubba-tabletserver');
    const port = portOf(address);
    assert.deepEqual(
      spec?.selector,
      manifests.get('StatefulSet', 'edubba-tabletserver').spec?.template.metadata?.labels,
    );
    assert.deepEqual(spec?.ports, [{ name: 'clients', port, targetPort: 'clients' }]);
    const { ports } = manifests.container('edubba-tabletserver');
    assert.ok(ports?.some(({ name, containerPort }) => name === 'clients' && containerPort === port));
    assert.deepEqual(theImage().ports, [port]);
  });

  test('a server that stops is out of it before its door closes, and has its time to stop besides', () => {
    const { terminationGracePeriodSeconds } = manifests.pod('edubba-tabletserver');
    const sleep = manifests.container('edubba-tabletserver').lifecycle?.preStop?.sleep?.seconds ?? 0;
    const timeToStop = Number(parseUnit(read('deploy/cluster/edubba-tabletserver.service')).get('TimeoutStopSec'));
    assert.ok(sleep > 0 && timeToStop > 0);
    assert.ok(Number(terminationGracePeriodSeconds) >= sleep + timeToStop);
  });
});

test('the network policy names ports of the pods', () => {
  const names = ROLES.flatMap((role) => manifests.container(role).ports?.map(({ name }) => name));
  const { ingress } = manifests.get('NetworkPolicy', 'edubba').spec ?? {};
  const ports = ingress?.flatMap((rule) => rule.ports?.map(({ port }) => port));
  assert.deepEqual(new Set(ports), new Set(names));
});
