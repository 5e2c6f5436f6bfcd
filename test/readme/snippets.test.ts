/**
 * Every snippet of the pages for users runs as it stands there. A page's snippets are known by their first lines, in
 * order: a new one, or one that was changed, fails the test until it is said here how it is run, or why it is not.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Block, blocksOf, firstLine } from './markdown.ts';
import { Place, ROOT } from './place.ts';

interface Snippet {
  readonly begins: string;
  readonly run:
    | ((place: Place, block: Block) => Promise<unknown>)
    | { readonly elsewhere: string }
    | { readonly cannot: string };
}

const PORT = '8086';
const shell =
  (...replacements: readonly (readonly [string, string])[]) =>
  (place: Place, block: Block): Promise<string> =>
    place.shell(
      block,
      replacements.map(([from, to]) => [from, to.replaceAll('PORT', String(place.port))]),
    );
/** The reader's port is one on which nothing listens. */
const onFreePort = shell([PORT, 'PORT']);

const README: readonly Snippet[] = [
  { begins: 'npm start', run: shell(['npm start', 'npm start -- --address 127.0.0.1:PORT']) },
  { begins: 'export BIGTABLE_EMULATOR_HOST=127.0.0.1:8086', run: onFreePort },
  { begins: "import { open, RowMutation } from 'edubba';", run: (place, block) => place.program(block, { times: 2 }) },
  {
    begins: 'export BIGTABLE_EMULATOR_HOST=127.0.0.1:8086',
    run: (place, block) => place.beside(() => onFreePort(place, block)),
  },
  {
    begins: 'bin/edubba token add tokens.txt crawler --out crawler.token',
    run: async (place, block) => {
      // what an authority would have given the reader
      await place.provide('server.key', 'test/certificates/server.key');
      await place.provide('server.pem', 'test/certificates/server.pem');
      await place.provide('ca.pem', 'test/certificates/ca.pem');
      await place.shell(block, [
        [PORT, String(place.port)],
        ['db.example.org', 'localhost'],
      ]);
    },
  },
];

const DOCKER = {
  cannot: 'needs Docker; npm run test:image does the steps of the image and runs a container of it',
} as const;
const SYSTEMD = {
  cannot:
    'needs systemd as process 1; deploy.test.ts runs the command of the unit and has systemd verify it, with the drop-in',
} as const;

const CLUSTER_OF_CONTAINERS = {
  cannot: 'needs Docker; test/etcd/deployed.test.ts runs the commands of the containers',
} as const;
const CLUSTER_OF_UNITS = {
  cannot: 'needs systemd as process 1; test/etcd/deployed.test.ts runs the commands of the units with these settings',
} as const;
const KUBERNETES = {
  cannot: 'needs Kubernetes; test/etcd/deployed.test.ts runs the commands of the pods',
} as const;

const DEPLOY: readonly Snippet[] = [
  { begins: 'docker build -f deploy/Dockerfile -t edubba .', run: DOCKER },
  { begins: 'docker run --rm -p 127.0.0.1:8086:8086 -v edubba-data:/data edubba', run: DOCKER },
  { begins: 'docker compose -f deploy/compose.yaml up --wait', run: DOCKER },
  {
    begins: 'docker run -d --name edubba -p 8086:8086 -v edubba-data:/data -v "$PWD/secrets:/secrets:ro" edubba \\',
    run: DOCKER,
  },
  { begins: 'npm pack --pack-destination /opt', run: SYSTEMD },
  { begins: '[Service]', run: SYSTEMD },
  { begins: 'docker compose -f deploy/cluster/compose.yaml up --wait', run: CLUSTER_OF_CONTAINERS },
  { begins: 'lock = "etcd://10.0.0.1,10.0.0.2,10.0.0.3"', run: CLUSTER_OF_UNITS },
  { begins: 'install -D -m 600 cluster.secret /etc/edubba/cluster.secret', run: CLUSTER_OF_UNITS },
  { begins: '[Service]', run: CLUSTER_OF_UNITS },
  { begins: 'openssl rand -hex 32 > cluster.secret', run: KUBERNETES },
];

/** A database with a row, closed. */
async function makeDatabase(place: Place, name: string): Promise<void> {
  for (const words of [
    ['createtable', 't', 'families=f'],
    ['set', 't', 'r', 'f:q=v'],
  ]) {
    const { status, err } = await place.run('edubba', ['--dir', name, ...words]);
    assert.equal(status, 0, err);
  }
}

const MOVING: readonly Snippet[] = [
  {
    begins: 'cp -a ./data ./copy',
    run: async (place, block) => {
      await makeDatabase(place, 'data');
      assert.match(await place.shell(block), /all is as it was written/);
    },
  },
  {
    begins: 'mkdir -p ./copy2',
    run: async (place, block) => {
      if ((await place.run('bash', ['-c', 'command -v rsync'])).status !== 0) return 'rsync is not here';
      return assert.match(await place.shell(block), /all is as it was written/);
    },
  },
  {
    begins: 'tar -C ./data -cf data.tar .',
    run: async (place, block) => {
      assert.match(await place.shell(block), /all is as it was written/);
      assert.match((await place.run('edubba', ['--dir', 'moved', 'read', 't'])).out, /"v"/);
    },
  },
  { begins: 'docker stop edubba', run: DOCKER },
];

const UPGRADING: readonly Snippet[] = [
  {
    begins:
      'FAILED_PRECONDITION: sstables/7d1845446df451d896ce57ba45f02bf4-18 needs features 0x1 that this version of Edubba does not know',
    run: { cannot: 'is what an older commit prints; npm run test:upgrade shows it' },
  },
  {
    begins: 'cp -a ./data ./before-going-back',
    run: async (place, block) => {
      await makeDatabase(place, 'data');
      assert.match(await place.shell(block), /all is as it was written/);
    },
  },
];

const REPAIR: readonly Snippet[] = [
  {
    begins: 'edubba --dir DIR inspect repair --write-to NEWDIR',
    run: async (place, block) => {
      await makeDatabase(place, 'DIR');
      // what is whole is not repaired: the file that tells where METADATA is gets lost
      await place.run('bash', ['-c', 'grep -rlaZ "^iroot\\|root{" DIR/files/lock-service/files | xargs -0 rm']);
      assert.match(await place.shell(block), /NEWDIR: everything was saved.*DIR: everything was saved/s);
      for (const directory of ['DIR', 'NEWDIR'])
        assert.match((await place.run('edubba', ['--dir', directory, 'read', 't'])).out, /"v"/);
    },
  },
];

const SETTINGS: readonly Snippet[] = [
  {
    begins: 'dir = "/var/lib/edubba"',
    run: async (place, block) => {
      await place.write('edubba.toml', block.text);
      const { status, out, err } = await place.run('edubba', ['settings', '--settings', 'edubba.toml']);
      assert.equal(status, 0, err);
      assert.equal(out.match(/edubba\.toml/g)?.length, block.text.match(/ = /g)?.length, out);
    },
  },
];

const HELLO = {
  elsewhere: 'npm run interop -- --only=hello runs each program of this page with the client it is for',
} as const;
const CLIENTS: readonly Snippet[] = [
  { begins: 'export BIGTABLE_EMULATOR_HOST=127.0.0.1:8086', run: HELLO },
  { begins: "import { Bigtable } from '@google-cloud/bigtable';", run: HELLO },
  { begins: 'from google.cloud import bigtable', run: HELLO },
  { begins: 'package main', run: HELLO },
  { begins: 'import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;', run: HELLO },
  { begins: 'cbt -project local -instance local createtable greetings-cbt families=text', run: HELLO },
];

const METRICS: readonly Snippet[] = [
  {
    begins: 'sum by (method) (rate(edubba_calls_total{code!="OK"}[1m]))',
    run: { cannot: 'is asked of Prometheus, which is not here' },
  },
];

const MACHINES = { cannot: 'needs etcd and several machines; npm run cluster-test has them' } as const;

const OPERATOR = { elsewhere: 'scripts/operations.mjs' } as const;

const OPERATIONS: readonly Snippet[] = [
  { begins: 'edubba cluster up', run: OPERATOR },
  { begins: `node -p "crypto.randomBytes(32).toString('hex')" > cluster.secret`, run: OPERATOR },
  { begins: 'lock = "etcd://127.0.0.1"', run: OPERATOR },
  { begins: 'edubba master --settings cluster.toml --cluster-address 127.0.0.1:8101', run: OPERATOR },
  { begins: 'edubba --address 127.0.0.1:8086 createtable t families=f', run: OPERATOR },
  { begins: 'lock = "etcd://10.0.0.1,10.0.0.2,10.0.0.3"', run: MACHINES },
  {
    begins:
      'edubba tabletserver --settings cluster.toml --cluster-address 10.0.0.7:8090 --read-cache-dir /var/cache/edubba',
    run: MACHINES,
  },
  { begins: 'edubba --address 127.0.0.1:8086 tablet events t', run: OPERATOR },
  { begins: 'edubba --address 127.0.0.1:8086 hottablets --since 1h', run: OPERATOR },
  { begins: 'edubba --address 127.0.0.1:8086 usage t', run: OPERATOR },
  {
    begins: 'edubba --address 127.0.0.1:8086 keepchanges t 7',
    run: { elsewhere: 'it goes on for ever; test/cli/storage-commands.test.ts runs both commands' },
  },
  { begins: 'edubba --address 127.0.0.1:8086 backup t before-cleanup --keep 30d', run: OPERATOR },
  { begins: 'edubba --address 127.0.0.1:8086 deletetable t-then', run: OPERATOR },
  { begins: 'npm install --global edubba', run: OPERATOR },
];

const BACKUPS: readonly Snippet[] = [
  {
    begins: 'edubba --dir data backup web before-cleanup --keep 30d',
    run: async (place, block) => {
      const made = ['--dir', 'data', 'createtable', 'web', 'families=contents:maxversions=1'];
      assert.equal((await place.run('edubba', made)).status, 0);
      const shown = await place.shell(block);
      assert.match(shown, /before-cleanup\s+web/);
      assert.match(shown, /State\s+ready/);
    },
  },
  {
    begins: "import { open, RowMutation } from 'edubba';",
    run: async (place, block) => {
      const shown = await place.program(block, { times: 2 });
      assert.match(String(shown), /before\nbefore-cleanup ready\nkept ready/);
    },
  },
  {
    begins: 'edubba --dir data exportbackup before-cleanup --backup-store /mnt/backups',
    run: async (place, block) => {
      for (const words of [
        ['--dir', 'data', 'backup', 'web', 'before-cleanup'],
        ['--dir', 'other', 'createtable', 'its-own', 'families=f:maxversions=1'],
      ])
        assert.equal((await place.run('edubba', words)).status, 0);
      const shown = await place.shell(block, [['/mnt/backups', 'backups']]);
      assert.match(shown, /before-cleanup\s+web\s.*bytes in/);
      const { out } = await place.run('edubba', ['--dir', 'other', 'ls']);
      assert.match(out, /web/);
    },
  },
];

const INSTANCES: readonly Snippet[] = [
  {
    begins: 'edubba --dir data createinstance games "All games" games-c1 europe-west1-b 3 SSD',
    run: async (place, block) => {
      const made = ['--dir', 'data', 'createtable', 'web', 'families=contents:maxversions=1'];
      assert.equal((await place.run('edubba', made)).status, 0);
      const shown = await place.shell(block);
      assert.match(shown, /games\s+All games\nlocal/);
      assert.match(shown, /games-c2\s+europe-west1-c\s+READY \(5 serve nodes\)/);
      assert.match(shown, /Description\s+By day\nRouting\s+route-to=games-c1\nPriority\s+low/);
    },
  },
  {
    begins: "import { open } from 'edubba';",
    run: async (place, block) => {
      const shown = await place.program(block, { times: 2 });
      assert.match(String(shown), /games 2\nbatch any,default any\nlocal/);
    },
  },
];

/** Every page for users, with its snippets. */
const PAGES: Readonly<Record<string, readonly Snippet[]>> = {
  'README.md': README,
  'SECURITY.md': [],
  'CODE_OF_CONDUCT.md': [],
  'CONTRIBUTING.md': [],
  'CHANGELOG.md': [],
  'deploy/README.md': DEPLOY,
  'docs/BACKUPS.md': BACKUPS,
  'docs/HOW-TO-ADD.md': [],
  'docs/INSTANCES.md': INSTANCES,
  'docs/METRICS.md': METRICS,
  'docs/MOVING.md': MOVING,
  'docs/OPERATIONS.md': OPERATIONS,
  'docs/REPAIR.md': REPAIR,
  'docs/RIGHTS.md': [{ begins: 'bin/edubba token add tokens.txt ops --out ops.token', run: onFreePort }],
  'docs/SETTINGS.md': SETTINGS,
  'docs/UPGRADING.md': UPGRADING,
  'docs/clients.md': CLIENTS,
};
/** For those who work on Edubba, or without any command. */
const WITHOUT_SNIPPETS = [
  'docs/ARCHITECTURE.md',
  'docs/BENCHMARKS.md',
  'docs/COMPATIBILITY.md',
  'docs/SCALING.md',
  'docs/STYLE.md',
];

test('every page for users is known here', () => {
  const pages = ['.', 'docs', 'deploy'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => (folder === '.' ? name : `${folder}/${name}`)),
  );
  assert.deepEqual(
    pages.filter((page) => !(page in PAGES) && !WITHOUT_SNIPPETS.includes(page)),
    [],
  );
  assert.deepEqual(
    Object.keys(PAGES).filter((page) => !pages.includes(page)),
    [],
  );
});

for (const [page, snippets] of Object.entries(PAGES)) {
  test(page, async (t) => {
    const blocks = blocksOf(readFileSync(join(ROOT, page), 'utf8'));
    assert.deepEqual(
      blocks.map(firstLine),
      snippets.map(({ begins }) => begins),
      'the snippets of the page are not those that are known here: say in this file how each new one is run',
    );
    if (snippets.every(({ run }) => typeof run !== 'function')) return;
    const place = await Place.make(t);
    for (const [i, { begins, run }] of snippets.entries()) {
      if (typeof run !== 'function') continue;
      await t.test(begins, async () => void (await run(place, blocks[i] as Block)));
    }
  });
}
