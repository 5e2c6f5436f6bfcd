/** Every command against a directory and against a server: what it prints, in both forms, and how it fails. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openDatabase } from '../../src/boot/index.ts';
import { documents, edubba, output, temporaryDirectory } from './run.ts';
import { TARGETS } from './targets.ts';

const DASHES = '-'.repeat(40);

type Outcome = Awaited<ReturnType<typeof edubba>>;

function notUnderstood({ status, err }: Outcome, message: RegExp): void {
  assert.equal(status, 2, err);
  assert.match(err, message);
}

function refused(outcome: Outcome, code: string, message: RegExp): void {
  assert.equal(outcome.status, 1, outcome.err);
  assert.ok(outcome.err.startsWith(`edubba: ${code}: `), outcome.err);
  assert.match(outcome.err, message);
}

for (const [name, make] of Object.entries(TARGETS)) {
  describe(`the commands on ${name}`, () => {
    test('roles are given, shown and taken', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      const policy = async (...resource: string[]): Promise<string> => output([...words, 'getpolicy', ...resource]);
      assert.equal(await policy('web'), 'no policy\n');
      // who has no name stays in
      await output([...words, 'grant', 'owner', 'allUsers', 'web']);
      await output([...words, 'grant', 'bigtable.reader', 'token:crawler', 'web']);
      await output([...words, 'grant', 'roles/bigtable.reader', 'token:crawler', 'web']);
      assert.equal(await policy('web'), 'roles/owner  allUsers\nroles/bigtable.reader  token:crawler\n');
      await output([...words, 'revoke', 'bigtable.reader', 'token:crawler', 'web']);
      assert.deepEqual(JSON.parse(await output([...words, 'getpolicy', 'web', '--json'])), {
        bindings: [{ role: 'roles/owner', members: ['allUsers'] }],
      });
      refused(await edubba([...words, 'revoke', 'bigtable.reader', 'token:crawler', 'web']), 'NOT_FOUND', /crawler/);
      refused(
        await edubba([...words, 'grant', 'king', 'token:a', 'web']),
        'INVALID_ARGUMENT',
        /roles\/bigtable.reader/,
      );
      refused(await edubba([...words, 'grant', 'owner', 'me', 'web']), 'INVALID_ARGUMENT', /token:NAME/);
      refused(await edubba([...words, 'getpolicy', 'none']), 'NOT_FOUND', /none/);
      await output([...words, 'grant', 'owner', 'allUsers', 'web/columnFamilies/f']);
      await output([...words, 'grant', 'owner', 'allUsers']);
      for (const resource of [['web/columnFamilies/f'], []])
        assert.equal(await policy(...resource), 'roles/owner  allUsers\n');
      await output([...words, 'revoke', 'owner', 'allUsers']);
      assert.equal(await policy(), 'no policy\n');
      await close();
    });

    test('tables are backed up and restored', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      await output([...words, 'set', 'web', 'r', 'f:a=1']);
      await output([...words, 'backup', 'web', 'b', '--keep', '7d']);
      await output([...words, 'set', 'web', 's', 'f:a=2']);
      await output([...words, 'restore', 'b', 'then']);
      assert.equal(await output([...words, 'count', 'then']), '1\n');
      assert.match(
        await output([...words, 'backups']),
        /^b\s+web\s+\d{4}\/\d\d\/\d\d-\S+\s+until \d{4}\/\S+\s+\d+ bytes\n$/,
      );
      const [one] = JSON.parse(await output([...words, 'backups', '--json'])).backups;
      assert.deepEqual([one.state, Math.round((one.expireMicros - one.startMicros) / 8.64e10)], ['ready', 7]);
      refused(await edubba([...words, 'backup', 'web', 'b']), 'ALREADY_EXISTS', /exists already/);
      refused(await edubba([...words, 'backup', 'none', 'c']), 'NOT_FOUND', /none/);
      refused(await edubba([...words, 'backup', 'web', 'c', '--keep', '1h']), 'INVALID_ARGUMENT', /6 hours/);
      refused(await edubba([...words, 'restore', 'none', 'x']), 'NOT_FOUND', /none/);
      const bad = await edubba([...words, 'backup', 'web', 'c', '--keep', 'long']);
      assert.deepEqual([bad.status, /--keep must be an age/.test(bad.err)], [2, true]);
      await output([...words, 'copybackup', 'b', 'copy', '--keep', '20d']);
      const get = async (id: string): Promise<Record<string, unknown>> =>
        JSON.parse(await output([...words, 'getbackup', id, '--json'])) as Record<string, unknown>;
      const copy = await get('copy');
      const daysOf = ({ expireMicros, startMicros }: Record<string, unknown>): number =>
        Math.round((Number(expireMicros) - Number(startMicros)) / 8.64e10);
      assert.deepEqual([copy['sourceBackup'], daysOf(copy), (await get('b'))['kind']], [one.name, 20, 'standard']);
      refused(await edubba([...words, 'copybackup', 'none', 'x']), 'NOT_FOUND', /none does not exist/);
      await output([...words, 'updatebackup', 'copy', '--keep', '40d']);
      assert.equal(daysOf(await get('copy')), 40);
      const until = new Date(Date.now() + 50 * 86_400_000).toISOString();
      await output([...words, 'updatebackup', 'copy', '--expires', until]);
      assert.equal(Number((await get('copy'))['expireMicros']), Date.parse(until) * 1000);
      await output([
        ...words,
        'backup',
        'web',
        'hot',
        '--hot',
        '--standard-after',
        '2d',
        '--expires',
        until.slice(0, 10),
      ]);
      const shown = await output([...words, 'getbackup', 'hot']);
      assert.match(shown, /^Name\s+projects\/\S+\/backups\/hot\nTable\s+\S+web\nState\s+ready\nType\s+hot\n/);
      assert.match(shown, /\nExpires\s.*\nStandard from\s.*\nSize\s+\d+ bytes\n$/);
      await output([...words, 'updatebackup', 'hot', '--standard-after', 'never']);
      assert.equal((await get('hot'))['hotToStandardMicros'], undefined);
      assert.equal(await output([...words, 'backups', '--cluster', 'other']), '');
      for (const [what, message] of [
        [['updatebackup', 'copy'], /needs --keep/],
        [['updatebackup', 'copy', '--expires', 'tomorrow'], /--expires must be a time/],
        [['updatebackup', 'copy', '--expires', '2030-99-01'], /--expires must be a time/],
        [['updatebackup', 'copy', '--keep', '7d', '--expires', '2030-01-01'], /cannot be used with/],
        [['backup', 'web', 'x', '--standard-after', 'never'], /--standard-after must be an age/],
      ] as const) {
        const { status, err } = await edubba([...words, ...what]);
        assert.deepEqual([status, message.test(err)], [2, true], err);
      }
      for (const id of ['hot', 'copy', 'b']) await output([...words, 'deletebackup', id]);
      assert.equal(await output([...words, 'backups']), '');
      refused(await edubba([...words, 'deletebackup', 'b']), 'NOT_FOUND', /b does not exist/);
      await close();
    });

    test('backups are exported, listed, imported and removed', async (t) => {
      const { words, storeWords, close } = await make(t);
      const run = (...command: string[]) => edubba([...words, ...command, ...storeWords]);
      const said = (...command: string[]) => output([...words, ...command, ...storeWords]);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      await output([...words, 'set', 'web', 'r', 'f:a=1']);
      await output([...words, 'backup', 'web', 'b']);
      const line = /^monday\s+web\s+\d{4}\/\d\d\/\d\d-\S+\s+\d+ bytes in 1 file\n$/;
      assert.match(await said('exportbackup', 'b', '--as', 'monday'), line);
      await output([...words, 'deletebackup', 'b']);
      assert.match(await said('exportedbackups'), line);
      const { exports } = JSON.parse(await said('exportedbackups', '--json'));
      assert.deepEqual([exports.length, exports[0].id, exports[0].files], [1, 'monday', 1]);
      assert.equal(await said('importbackup', 'monday', 'c', '--keep', '7d'), '');
      const imported = JSON.parse(await said('importbackup', 'monday', 'd', '--json'));
      assert.match(imported.sourceBackup, /\/backups\/b$/);
      assert.equal(Math.round((imported.expireMicros - imported.startMicros) / 8.64e10), 30);
      await output([...words, 'restore', 'c', 'then']);
      assert.equal(await output([...words, 'count', 'then']), '1\n');
      refused(await run('exportbackup', 'none'), 'NOT_FOUND', /none does not exist/);
      refused(await run('exportbackup', 'c', '--as', 'monday'), 'ALREADY_EXISTS', /monday/);
      refused(await run('importbackup', 'none', 'e'), 'NOT_FOUND', /has no backup none/);
      refused(await run('importbackup', 'monday', 'c'), 'ALREADY_EXISTS', /exists already/);
      refused(await run('importbackup', 'monday', 'e', '--keep', '1h'), 'INVALID_ARGUMENT', /6 hours/);
      refused(await run('deleteexportedbackup', '../monday'), 'INVALID_ARGUMENT', /id/);
      assert.equal(await said('deleteexportedbackup', 'monday'), '');
      assert.equal(await said('exportedbackups'), '');
      refused(await run('deleteexportedbackup', 'monday'), 'NOT_FOUND', /monday/);
      await close();
    });

    test('instances are created, listed and deleted', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      await output([...words, 'createinstance', 'games', 'All games', 'c1', 'europe-west1-b', '3', 'SSD']);
      assert.equal(
        await output([...words, 'listinstances']),
        'Instance Name\t\tInfo\n-------------\t\t----\ngames\t\t\tAll games\nlocal\t\t\tlocal\n',
      );
      const { instances } = JSON.parse(await output([...words, 'listinstances', '--json']));
      assert.deepEqual(
        instances.map(({ name }: { name: string }) => name),
        ['projects/local/instances/games', 'projects/local/instances/local'],
      );
      const cluster = { id: 'c1', zone: 'europe-west1-b', nodes: 3, storage: 'ssd' };
      assert.deepEqual([instances[0].displayName, instances[0].clusters], ['All games', [cluster]]);
      // of another project
      const other = [...words, '--project', 'p'];
      const made = JSON.parse(await output([...other, '--json', 'createinstance', 'ads', 'Ads', 'c', 'z', '1', 'hdd']));
      assert.deepEqual([made.name, made.clusters[0].storage], ['projects/p/instances/ads', 'hdd']);
      assert.match(await output([...other, 'listinstances']), /^ads\t+Ads$/m);
      await output([...words, 'deleteinstance', 'projects/p/instances/ads']);
      assert.match(await output([...other, 'listinstances']), /^local\t+local$/m);
      const create = (...more: string[]) => edubba([...words, 'createinstance', ...more]);
      refused(await create('games', 'Again', 'c', 'z', '1', 'SSD'), 'ALREADY_EXISTS', /instance games exists already/);
      refused(await create('G', 'Bad id', 'c', 'z', '1', 'SSD'), 'INVALID_ARGUMENT', /instance id "G" must be/);
      notUnderstood(await create('more', 'More', 'c', 'z', '1', 'tape'), /storage of a cluster must be SSD or HDD/);
      notUnderstood(await create('more', 'More', 'c', 'z', 'many', 'SSD'), /number of nodes must be a whole number/);
      assert.equal((await create('more', 'More', 'c', 'z', '1')).status, 2);
      refused(await edubba([...words, 'deleteinstance', 'local']), 'FAILED_PRECONDITION', /is the default one/);
      refused(await edubba([...words, 'deleteinstance', 'none']), 'NOT_FOUND', /instance none does not exist/);
      await output([...words, 'createtable', 'projects/local/instances/games/tables/t', 'families=f:never']);
      assert.equal(await output([...words, 'deleteinstance', 'games']), '');
      assert.equal(await output([...words, 'ls']), 'web\n');
      await close();
    });

    test('clusters of an instance are added, changed, listed and deleted', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      await output([...words, 'createinstance', 'games', 'All games', 'c1', 'z', '3', 'SSD']);
      const own = [...words, '--instance', 'games'];
      assert.equal(await output([...own, 'createcluster', 'c2', 'z-2', '1', 'HDD']), '');
      assert.equal(await output([...own, 'updatecluster', 'c2', 'num-nodes=5']), '');
      assert.equal(
        await output([...own, 'listclusters']),
        [
          'Cluster Name\tZone\t\tState',
          '------------\t----\t\t----',
          'c1\t\tz\t\tREADY (3 serve nodes)',
          'c2\t\tz-2\t\tREADY (5 serve nodes)',
          '',
        ].join('\n'),
      );
      const changed = JSON.parse(await output([...own, '--json', 'updatecluster', 'c2', 'num-nodes=6']));
      assert.deepEqual(changed, { id: 'c2', zone: 'z-2', nodes: 6, storage: 'hdd' });
      const { clusters } = JSON.parse(await output([...own, '--json', 'listclusters']));
      assert.deepEqual(clusters[1], changed);
      // without --instance it is the default one
      assert.match(await output([...words, 'listclusters']), /^edubba\t+local\t+READY \(1 serve nodes\)$/m);
      refused(await edubba([...own, 'createcluster', 'c2', 'z', '1', 'SSD']), 'ALREADY_EXISTS', /cluster c2 of inst/);
      refused(await edubba([...own, 'updatecluster', 'c3', 'num-nodes=2']), 'NOT_FOUND', /cluster c3 of instance ga/);
      notUnderstood(await edubba([...own, 'updatecluster', 'c2']), /updatecluster needs num-nodes=N/);
      notUnderstood(await edubba([...own, 'updatecluster', 'c2', 'num-nodes=0']), /num-nodes must be a whole number/);
      notUnderstood(await edubba([...own, 'updatecluster', 'c2', 'nodes=2']), /"nodes=2" is not known here/);
      assert.equal(await output([...own, 'deletecluster', 'c2']), '');
      refused(await edubba([...own, 'deletecluster', 'c1']), 'FAILED_PRECONDITION', /is its last one/);
      refused(
        await edubba([...own, 'deletecluster', 'c2']),
        'NOT_FOUND',
        /cluster c2 of instance games does not exist/,
      );
      await close();
    });

    test('app profiles are created, shown, changed and deleted', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      await output([...words, 'createinstance', 'games', 'All games', 'c1', 'z', '3', 'SSD']);
      const create = (...more: string[]) => edubba([...words, 'createappprofile', 'games', ...more]);
      const get = async (id: string) => JSON.parse(await output([...words, '--json', 'getappprofile', 'games', id]));
      const name = 'projects/local/instances/games';
      await output([...words, 'createappprofile', name, 'one', 'Counts', 'route-to=c1', 'transactional-writes']);
      await output([
        ...words,
        'createappprofile',
        'games',
        'any',
        'At night',
        'route-any',
        'priority=low',
        'force=true',
      ]);
      assert.deepEqual((await get('one')).routing, { kind: 'single', cluster: 'c1', allowsTransactions: true });
      assert.deepEqual(await get('any'), {
        id: 'any',
        description: 'At night',
        routing: { kind: 'any', clusters: [], hasRowAffinity: false },
        isolation: { kind: 'standard', priority: 'low' },
      });
      const rows = (await output([...words, 'listappprofile', 'games'])).split('\n').map((line) => line.split(/\t+/));
      assert.deepEqual(rows, [
        ['AppProfile', 'Profile Description', 'Profile Routing Policy', 'Priority'],
        ['----------', '-------------------', '----------------------', '--------'],
        ['any', 'At night', 'route-any', 'low'],
        ['default', 'route-to=c1 transactional-writes', 'high'],
        ['one', 'Counts', 'route-to=c1 transactional-writes', 'high'],
        [''],
      ]);
      // what the words do not say stays, but for the description
      await output([...words, 'updateappprofile', 'games', 'any', 'By day']);
      const changed = await get('any');
      assert.deepEqual(
        [changed.description, changed.routing.kind, changed.isolation.priority],
        ['By day', 'any', 'low'],
      );
      const more = ['route-any', 'restrict-to=c1', 'row-affinity', 'priority=medium'];
      const shown = JSON.parse(await output([...words, '--json', 'updateappprofile', 'games', 'any', '', ...more]));
      assert.deepEqual(shown, await get('any'));
      assert.equal(
        await output([...words, 'getappprofile', 'games', 'any']),
        'Name\t\tany\nDescription\t\nRouting\t\troute-any restrict-to=c1 row-affinity\nPriority\tmedium\n',
      );
      await output([...words, 'updateappprofile', 'games', 'any', 'Reads', 'route-to=c1', 'data-boost']);
      assert.match(
        await output([...words, 'getappprofile', 'games', 'any']),
        /Routing\s+route-to=c1\nPriority\s+data-boost/,
      );
      refused(await create('one', 'Again', 'route-any'), 'ALREADY_EXISTS', /app profile one of instance games exists/);
      refused(await create('two', 'x', 'route-to=none'), 'FAILED_PRECONDITION', /names cluster "none"/);
      refused(
        await edubba([...words, 'getappprofile', 'games', 'two']),
        'NOT_FOUND',
        /app profile two of instance gam/,
      );
      refused(await edubba([...words, 'listappprofile', 'none']), 'NOT_FOUND', /instance none does not exist/);
      for (const [given, message] of [
        [[], /createappprofile needs route-any or route-to=CLUSTER/],
        [['route-any', 'route-to=c1'], /give either route-any or route-to=/],
        [['route-any', 'transactional-writes'], /transactional-writes needs route-to=/],
        [['route-to=c1', 'row-affinity'], /row-affinity needs route-any/],
        [['route-to=c1', 'restrict-to=c1'], /restrict-to= needs route-any/],
        [['route-to='], /"route-to=" has no value/],
        [['route-any', 'priority=urgent'], /priority must be one of low, medium, high, not "urgent"/],
        [['route-to=c1', 'data-boost', 'priority=low'], /give either priority= or data-boost/],
        [['route-to=c1', 'transactional-write'], /did you mean transactional-writes\?/],
        [['route-to=c1', 'force=perhaps'], /force must be true or false/],
      ] as const)
        notUnderstood(await create('two', 'x', ...given), message);
      const remove = (...given: string[]) => edubba([...words, 'deleteappprofile', 'games', ...given]);
      assert.equal((await remove('one')).status, 0);
      refused(await remove('one'), 'NOT_FOUND', /app profile one of instance games does not exist/);
      refused(await remove('default'), 'FAILED_PRECONDITION', /that of all calls that name none/);
      assert.equal((await remove('default', 'force')).status, 0);
      const left = JSON.parse(await output([...words, '--json', 'listappprofile', 'games'])).appProfiles;
      assert.deepEqual(
        left.map(({ id }: { id: string }) => id),
        ['any'],
      );
      await close();
    });

    test('the memory layer is turned on and off, and hot tablets are listed', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      const state = () => output([...words, 'memorylayer']);
      assert.equal(await state(), 'off\n');
      assert.equal(await output([...words, 'memorylayer', 'on']), '');
      assert.equal(await state(), 'on\n');
      const off = JSON.parse(await output([...words, 'memorylayer', 'off', '--json']));
      assert.deepEqual([off.isOn, off.cluster], [false, 'projects/local/instances/local/clusters/edubba']);
      assert.equal(await state(), 'off\n');
      refused(await edubba([...words, 'memorylayer', '--cluster', 'none']), 'NOT_FOUND', /none/);
      assert.equal((await edubba([...words, 'memorylayer', 'up'])).status, 2);
      assert.match(await output([...words, 'hottablets']), /^Percent +Minute +Table +First row +Up to\n/);
      refused(await edubba([...words, 'hottablets', '--since', '3d']), 'INVALID_ARGUMENT', /48 hours/);
      refused(await edubba([...words, 'hottablets', '--cluster', 'none']), 'NOT_FOUND', /none/);
      const bad = await edubba([...words, 'hottablets', '--since', 'long']);
      assert.deepEqual([bad.status, /--since must be an age/.test(bad.err)], [2, true]);
      await close();
    });

    test('usage is printed, and quotas are set', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never,g:never']);
      await output([...words, 'set', 'web', 'r', 'f:a=1']);
      await output([...words, 'setquota', 'web', '1GiB']);
      await output([...words, 'setquota', 'web', '0', '--family', 'g']);
      const lines = (await output([...words, 'usage', 'web'])).trimEnd().split('\n');
      assert.match(
        lines[0]!,
        /^Family +On disk +In memory +Quota +Writes +Reads +Rows written +Rows read +Bytes in +Byt/,
      );
      assert.match(lines[1]!, /^f +\d+ +\d+ +- +- +- +\d+ +\d+ +\d+ +\d+$/);
      assert.match(lines[2]!, /^g +0 +0 +0 +- +- +0 +0 +0 +0$/);
      assert.match(lines[3]!, /^\* +\d+ +\d+ +1073741824 +\d+ +\d+ /);
      const { families, table } = JSON.parse(await output([...words, '--json', 'usage', 'web']));
      assert.deepEqual(
        families.map((each: { family: string; quotaBytes?: number }) => [each.family, each.quotaBytes]),
        [
          ['f', undefined],
          ['g', 0],
        ],
      );
      assert.equal(table.quotaBytes, 2 ** 30);
      refused(await edubba([...words, 'set', 'web', 'r', 'g:a=1']), 'RESOURCE_EXHAUSTED', /"g".*quota of 0 bytes/);
      await output([...words, 'setquota', 'web', 'none', '--family', 'g']);
      await output([...words, 'set', 'web', 'r', 'g:a=1']);
      refused(await edubba([...words, 'setquota', 'web', '1', '--family', 'none']), 'NOT_FOUND', /none/);
      for (const bytes of ['much', '-1', '1.5', '', '9007199254740993', '1e3'])
        notUnderstood(await edubba([...words, 'setquota', 'web', '--', bytes]), /bytes of a quota must be none/);
      await close();
    });

    test('deleted tables are listed, restored, and removed', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 'web', 'families=f:never']);
      await output([...words, 'set', 'web', 'r', 'f:a=1']);
      const none = { status: 0, out: '', err: 'no deleted tables\n' };
      assert.deepEqual(await edubba([...words, 'ls', '--deleted']), none);
      await output([...words, 'deletetable', 'web']);
      assert.equal((await edubba([...words, 'ls'])).err, 'no tables\n');
      notUnderstood(await edubba([...words, 'ls', 'web', '--deleted']), /name none/);
      if (name === 'a directory') {
        // nothing is kept
        assert.deepEqual(await edubba([...words, 'ls', '--deleted']), none);
        refused(await edubba([...words, 'undeletetable', 'web']), 'NOT_FOUND', /web was not deleted/);
        return close();
      }
      assert.match(
        await output([...words, 'ls', '--deleted']),
        /^web\s+deleted \d{4}\/\d\d\/\d\d-\S+\s+kept until \d{4}\/\S+\n$/,
      );
      const { tables } = JSON.parse(await output([...words, 'ls', '--deleted', '--json']));
      assert.equal(tables[0].keptUntilMicros - tables[0].deletedMicros, 8.64e10);
      assert.deepEqual(await edubba([...words, '--instance', 'other', 'ls', '--deleted']), none);
      await output([...words, 'undeletetable', 'web']);
      assert.equal(await output([...words, 'count', 'web']), '1\n');
      refused(await edubba([...words, 'undeletetable', 'web']), 'ALREADY_EXISTS', /web exists already/);
      await output([...words, 'deletetable', 'web', '--now']);
      refused(await edubba([...words, 'undeletetable', 'web']), 'NOT_FOUND', /web was not deleted/);
      refused(await edubba([...words, 'deletetable', 'web', '--now']), 'NOT_FOUND', /web does not exist/);
      await close();
    });

    test('tables and families are made, listed, changed and deleted', async (t) => {
      const { words, close } = await make(t);
      const made = await edubba([
        ...words,
        'createtable',
        'web',
        'families=contents:maxversions=3,anchor:maxage=10d||maxversions=1,plain,all:never',
        'splits=g,p',
      ]);
      assert.equal(made.status, 0, made.err);
      assert.equal(made.out, '');
      assert.match(made.err, /^edubba: warning: plain: no policy was given, so one version of a column is kept/);
      await output([...words, 'createtable', 'empty']);
      await output([...words, 'createfamily', 'web', 'more']);
      await output([...words, 'createfamily', 'web', 'gc:gcpolicy=maxversions=2']);
      assert.equal(await output([...words, 'ls']), 'empty\nweb\n');
      assert.deepEqual(JSON.parse(await output([...words, 'ls', '--json'])), ['empty', 'web']);
      await output([...words, 'setgcpolicy', 'web', 'all', '(maxage=36h', 'or', 'maxversions=3)', 'and', 'maxage=1d']);
      await output([...words, 'setgcpolicy', 'web', 'contents', 'never']);
      const families = [
        'Family Name\tGC Policy',
        '-----------\t---------',
        'all\t\t((age() > 36h || versions() > 3) && age() > 1d)',
        'anchor\t\t(age() > 10d || versions() > 1)',
        'contents\t<never>',
        'gc\t\tversions() > 2',
        'more\t\t<never>',
        'plain\t\tversions() > 1',
      ];
      assert.equal(await output([...words, 'ls', 'web']), `${families.join('\n')}\n`);
      const json = JSON.parse(await output(['--json', ...words, 'ls', 'web'])) as { name: string; gcRule?: unknown }[];
      assert.deepEqual(
        json.map((family) => family.name),
        ['all', 'anchor', 'contents', 'gc', 'more', 'plain'],
      );
      assert.deepEqual(json[3]?.gcRule, { kind: 'maxVersions', versions: 2 });
      await output([...words, 'deletetable', 'empty']);
      assert.equal(await output([...words, 'ls']), 'web\n');
      const elsewhere = await edubba([...words, '--instance', 'other', 'ls']);
      assert.deepEqual(elsewhere, { status: 0, out: '', err: 'no tables in projects/local/instances/other\n' });
      assert.deepEqual(await edubba([...words, '--instance', 'other', 'ls', '--json']), {
        status: 0,
        out: '[]\n',
        err: '',
      });
      assert.equal(await output([...words, '--instance', 'other', 'createtable', 'mine', 'families=f:never']), '');
      assert.equal(
        await output([...words, '--instance', 'other', 'ls', 'projects/local/instances/other/tables/mine']),
        'Family Name\tGC Policy\n-----------\t---------\nf\t\t<never>\n',
      );
      refused(await edubba([...words, 'createtable', 'web']), 'ALREADY_EXISTS', /web/);
      refused(await edubba([...words, 'ls', 'nothing']), 'NOT_FOUND', /nothing/);
      refused(await edubba([...words, 'deletetable', 'nothing']), 'NOT_FOUND', /nothing/);
      refused(await edubba([...words, 'createfamily', 'web', 'no/name']), 'INVALID_ARGUMENT', /no\/name/);
      notUnderstood(await edubba([...words, 'createtable', 't', 'families=f,f']), /family "f" is given twice/);
      notUnderstood(await edubba([...words, 'createtable', 't', 'families=:never']), /names no family/);
      notUnderstood(await edubba([...words, 'createtable', 't', 'family=f']), /known: families=…, splits=…/);
      notUnderstood(await edubba([...words, 'setgcpolicy', 'web', 'all', 'maxage=5']), /GC policy "maxage=5"/);
      refused(await edubba([...words, 'setgcpolicy', 'web', 'nothing', 'never']), 'NOT_FOUND', /nothing/);
      await close();
    });

    test('rows are set, read, looked up, counted and deleted, as cbt would', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never,g:never']);
      await output([...words, 'set', 't', 'r1', 'app-profile=any', 'f:q=one@1000', 'g:=empty name@2000']);
      await output([...words, 'set', 't', 'r1', 'f:q=two@3000', 'f:x="quoted"\t☃@1700000000123000']);
      await output([...words, 'set', 't', 'r2', 'f:q=a@b']);
      await output([...words, 'set', 't', 'other', 'g:n=7@1000']);
      const r1 = [
        DASHES,
        'r1',
        `  ${'f:q'.padEnd(40)} @ 1970/01/01-00:00:00.003000`,
        '    "two"',
        `  ${'f:q'.padEnd(40)} @ 1970/01/01-00:00:00.001000`,
        '    "one"',
        `  ${'f:x'.padEnd(40)} @ 2023/11/14-22:13:20.123000`,
        '    "\\"quoted\\"\\t☃"',
        `  ${'g:'.padEnd(40)} @ 1970/01/01-00:00:00.002000`,
        '    "empty name"',
      ];
      assert.equal(await output([...words, 'lookup', 't', 'r1']), `${r1.join('\n')}\n`);
      assert.equal(await output([...words, 'read', 't', 'start=r1', 'end=r2']), `${r1.join('\n')}\n`);
      const newest = [...r1.slice(0, 4), ...r1.slice(6)];
      assert.equal(
        await output([...words, 'read', 't', 'prefix=r', 'count=1', 'cells-per-column=1']),
        `${newest.join('\n')}\n`,
      );
      assert.equal(await output([...words, 'count', 't']), '3\n');
      assert.equal(await output([...words, 'count', 't', 'prefix=r']), '2\n');
      assert.equal(await output([...words, 'count', 't', '--json']), '3\n');
      await output([...words, 'deleterow', 't', 'r2']);
      assert.equal(await output([...words, 'read', 't', 'keys-only=true']), 'other\nr1\n');
      assert.equal(await output([...words, 'read', 't', 'keys-only=true', 'reversed=true', 'count=1']), 'r1\n');
      assert.equal(await output([...words, 'read', 't', 'regex=o.*', 'keys-only=true']), 'other\n');
      assert.equal(await output([...words, 'lookup', 't', 'r1', 'keys-only=true']), 'r1\n');
      for (const json of [[], ['--json']]) {
        const missing = await edubba([...words, 'lookup', 't', 'r2', ...json]);
        assert.deepEqual([missing.status, missing.out], [1, '']);
        assert.match(missing.err, /NOT_FOUND.*row .*r2.* not found/);
      }
      refused(
        await edubba([...words, 'lookup', 't', 'r1', 'columns=f:none']),
        'NOT_FOUND',
        /columns f:none of row "r1" .* have no cells/,
      );
      await close();
    });

    test('all rows are deleted by a command of that name alone, and no command takes an empty word for everything', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:maxversions=1']);
      for (const row of ['a', 'b']) await output([...words, 'set', 't', row, 'f:q=1@1000']);
      const all = await output([...words, 'read', 't']);
      const EMPTY: readonly (readonly string[])[] = [
        ['deleteallrows', ''],
        ['deletetable', ''],
        ['deleterow', 't', ''],
        ['deleterow', '', 'a'],
        ['read', 't', 'prefix='],
        ['read', 't', 'start='],
        ['read', 't', 'end='],
        ['read', 't', 'regex='],
        ['read', 't', 'columns='],
        ['read', 't', 'count='],
        ['read', 't', 'cells-per-column='],
        ['read', ''],
        ['count', 't', 'prefix='],
        ['count', ''],
        ['lookup', 't', ''],
        ['lookup', 't', 'a', 'columns='],
        ['ls', ''],
        ['set', 't', '', 'f:q=1'],
        ['createtable', ''],
        ['createtable', 'u', 'families='],
        ['createtable', 'u', 'families=f:'],
        ['createtable', 'u', 'splits='],
        ['createfamily', 't', ''],
        ['createfamily', 't', 'g:'],
        ['setgcpolicy', 't', 'f', ''],
        ['setgcpolicy', 't', '', 'never'],
        ['setgroups', 't'],
        ['setgroups', 't', ''],
        ['split', 't', ''],
        ['split', ''],
        ['merge', 't', ''],
        ['compact', ''],
      ];
      for (const empty of EMPTY) {
        const { status, out, err } = await edubba([...words, ...empty]);
        assert.ok(status === 1 || status === 2, empty.join(' '));
        assert.equal(out, '', empty.join(' '));
        // over a server some of them are not there at all
        assert.match(err, /^edubba: (INVALID_ARGUMENT|UNIMPLEMENTED): /, empty.join(' '));
      }
      assert.equal(await output([...words, 'read', 't']), all);
      assert.match(await output([...words, 'ls', 't']), /^f\t\tversions\(\) > 1$/m);
      assert.equal((await edubba([...words, 'deleteallrows'])).status, 2);
      assert.equal((await edubba([...words, 'deleteallrows', 't', 'prefix=a'])).status, 2);
      assert.equal(await output([...words, 'count', 't']), '2\n');
      await output([...words, 'deleteallrows', 't']);
      assert.equal(await output([...words, 'count', 't']), '0\n');
      refused(await edubba([...words, 'deleteallrows', 'nothing']), 'NOT_FOUND', /nothing/);
      await close();
    });

    test('expressions and values are UTF-8 text', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never']);
      await output([...words, 'set', 't', 'Zürich', 'f:größe=ä@1000']);
      for (const regex of ['Zürich', 'Z[äü]rich', 'Z.rich'])
        assert.equal(await output([...words, 'read', 't', `regex=${regex}`, 'keys-only=true']), 'Zürich\n', regex);
      for (const columns of ['f:größe', 'gr.ße', 'f:gr[öü]ße'])
        assert.equal(
          await output([...words, 'read', 't', `columns=${columns}`, 'keys-only=true']),
          'Zürich\n',
          columns,
        );
      await close();
    });

    test('a time that looks like milliseconds is of microseconds, as in cbt, with a warning', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never']);
      const early = await edubba([...words, 'set', 't', 'r', 'f:q=v@1700000000000']);
      assert.deepEqual([early.status, early.out], [0, '']);
      assert.equal(
        early.err,
        'edubba: warning: @1700000000000 is in microseconds, and so 1970/01/20-16:13:20.000000; if milliseconds were meant, write @1700000000000000\n',
      );
      assert.match(await output([...words, 'read', 't']), /@ 1970\/01\/20-16:13:20\.000000/);
      for (const time of ['1700000000000000', '999999999000', '10000000000000'])
        assert.equal((await edubba([...words, 'set', 't', 'r', `f:q=v@${time}`])).err, '', time);
      await close();
    });

    test('columns= takes what cbt takes', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never,fam:never']);
      await output([...words, 'set', 't', 'r', 'f:a=1@1000', 'f:ab=2@1000', 'fam:a=3@1000', 'fam:x:y=4@1000']);
      const CASES: Readonly<Record<string, string>> = {
        'f:a': '1',
        'f:a.*': '12',
        'f:': '12',
        a: '13',
        ':a': '13',
        'f:ab,fam:a': '23',
        'f:ab,f:ab': '2',
        'fam:x:y': '4',
        'f.*:a': '13',
      };
      for (const [columns, expected] of Object.entries(CASES)) {
        const rows = documents(await output([...words, 'read', 't', `columns=${columns}`, '--json'])) as {
          cells?: { value: string }[];
        }[];
        assert.equal((rows[0]?.cells ?? []).map(({ value }) => value).join(''), expected, columns);
      }
      notUnderstood(await edubba([...words, 'read', 't', 'columns=:']), /names neither a family nor a column/);
      notUnderstood(await edubba([...words, 'read', 't', 'columns=']), /"columns=" has no value/);
      notUnderstood(await edubba([...words, 'read', 't', 'columns=,']), /names no column/);
      refused(await edubba([...words, 'read', 't', 'columns=f:(']), 'INVALID_ARGUMENT', /./);
      refused(await edubba([...words, 'read', 't', 'columns=fa:']), 'NOT_FOUND', /no column family "fa"/);
      await close();
    });

    test('JSON gives exact bytes and int64', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never']);
      await output([...words, 'set', 't', 'r', 'f:q=v@9007199254740993000', 'f:q=w@1000']);
      assert.deepEqual(documents(await output([...words, 'read', 't', '--json'])), [
        {
          key: 'r',
          cells: [
            { family: 'f', qualifier: 'q', timestamp: '9007199254740993000', value: 'v' },
            { family: 'f', qualifier: 'q', timestamp: '1000', value: 'w' },
          ],
        },
      ]);
      assert.deepEqual(documents(await output([...words, 'read', 't', 'keys-only=true', '--json'])), [{ key: 'r' }]);
      await close();
    });

    test('wrong arguments are told by name and change nothing', async (t) => {
      const { words, close } = await make(t);
      await output([...words, 'createtable', 't', 'families=f:never']);
      notUnderstood(await edubba([...words, 'set', 't', 'r', 'f:q']), /"f:q" must be written family:column=value/);
      refused(await edubba([...words, 'set', 't', 'r', 'f:q=1', 'missing:q=1']), 'NOT_FOUND', /missing/);
      refused(await edubba([...words, 'set', 'nothing', 'r', 'f:q=1']), 'NOT_FOUND', /nothing/);
      notUnderstood(await edubba([...words, 'set', 't', 'r', 'app-profile=x']), /at least one cell/);
      refused(await edubba([...words, 'set', 't', '', 'f:q=1']), 'INVALID_ARGUMENT', /./);
      notUnderstood(await edubba([...words, 'set', 't', 'a\ufffd', 'f:q=1']), /not UTF-8/);
      notUnderstood(await edubba([...words, 'read', 't', 'limit=1']), /"limit=1" is not known here/);
      notUnderstood(await edubba([...words, 'read', 't', 'count=0']), /count must be a whole number above 0/);
      refused(
        await edubba([...words, 'read', 't', 'prefix=a', 'start=b']),
        'INVALID_ARGUMENT',
        /either prefix, or start and end/,
      );
      notUnderstood(await edubba([...words, 'read', 't', 'reversed=maybe']), /reversed must be true or false/);
      refused(await edubba([...words, 'read', 't', 'regex=(']), 'INVALID_ARGUMENT', /./);
      refused(await edubba([...words, 'count', 'nothing']), 'NOT_FOUND', /nothing/);
      assert.equal(await output([...words, 'count', 't']), '0\n');
      await close();
    });
  });
}

describe('where the data is', () => {
  test('a directory of no name is refused, and is not the current one', async () => {
    const commands = [
      ['ls'],
      ['createtable', 't'],
      ['deletetable', 't'],
      ['serve'],
      ['inspect', 'check'],
      ['inspect', 'repair', '--yes'],
      ['inspect', 'repair', '--dir', '/none', '--write-to', ''],
    ];
    for (const words of commands)
      notUnderstood(
        await edubba(words.at(-1) === '' ? words : ['--dir', '', ...words]),
        /the directory of an option is empty/,
      );
  });

  test('BIGTABLE_EMULATOR_HOST names the server where nothing else does', async (t) => {
    const server = await TARGETS['a server'](t);
    const address = server.words[1] as string;
    const environment = { BIGTABLE_EMULATOR_HOST: address };
    await output(['createtable', 't', 'families=f:never'], environment);
    assert.equal(await output(['ls'], environment), 't\n');
    assert.equal(await output(['--address', address, 'ls'], { BIGTABLE_EMULATOR_HOST: '127.0.0.1:1' }), 't\n');
    await server.close();
  });

  test('it must be said, once, and be there', async (t) => {
    const directory = await temporaryDirectory(t);
    refused(await edubba(['ls']), 'INVALID_ARGUMENT', /--dir DIR, or --address HOST:PORT/);
    refused(
      await edubba(['--dir', directory, '--address', '127.0.0.1:1', 'ls']),
      'INVALID_ARGUMENT',
      /either --dir .* or --address \(127\.0\.0\.1:1\), not both/,
    );
    refused(await edubba(['--dir', ':memory:', 'ls']), 'INVALID_ARGUMENT', /in memory/);
    for (const address of ['somewhere', '127.0.0.1', '127.0.0.1:0', '127.0.0.1:99999', 'http://127.0.0.1:1', '']) {
      refused(
        await edubba(['--address', address, 'ls']),
        'INVALID_ARGUMENT',
        address === '' ? /say where the data is/ : /invalid address/,
      );
    }
    refused(await edubba(['--address', '127.0.0.1:1', 'ls']), 'UNAVAILABLE', /127\.0\.0\.1:1/);
  });

  test('a name that was mistyped makes no database; something else’s directory is left alone', async (t) => {
    const directory = await temporaryDirectory(t);
    for (const command of [['ls'], ['read', 't'], ['set', 't', 'r', 'f:q=1'], ['deletetable', 't']]) {
      refused(await edubba(['--dir', join(directory, 'typo'), ...command]), 'NOT_FOUND', /no database found in .*typo/);
    }
    assert.deepEqual(await readdir(directory), []);
    await mkdir(join(directory, 'other'));
    await writeFile(join(directory, 'other', 'file'), '');
    refused(
      await edubba(['--dir', join(directory, 'other'), 'createtable', 't']),
      'FAILED_PRECONDITION',
      /is not an Edubba directory/,
    );
    assert.deepEqual(
      (await readdir(join(directory, 'other'))).filter((entry) => entry !== 'LOCK'),
      ['file'],
    );
  });

  test('a directory that is in use is refused, and says by whom', async (t) => {
    const directory = await temporaryDirectory(t);
    const { close } = await openDatabase({ directory });
    try {
      refused(
        await edubba(['--dir', directory, 'ls']),
        'FAILED_PRECONDITION',
        /is open in this very process, since \d{4}-/,
      );
    } finally {
      await close();
    }
    assert.equal(await output(['--dir', directory, 'ls']), '');
  });
});

describe('what is not understood', () => {
  test('ends with status 2, a hint, and no output', async () => {
    const CASES: readonly [readonly string[], RegExp][] = [
      [['rea', 't'], /unknown command 'rea'[\s\S]*Did you mean read\?/],
      [['ls', '--jso'], /unknown option '--jso'[\s\S]*--json/],
      [['read'], /missing required argument 'table'/],
      [['set', 't', 'r'], /missing required argument 'cells'/],
      [['setgcpolicy', 't', 'f'], /missing required argument 'policy'/],
      [['ls', 'a', 'b'], /too many arguments/],
      [['serve', '--limits', 'none'], /must be default or cloud/],
      [['inspect', 'nothing', 'x'], /unknown command 'nothing'/],
      [[], /Usage: edubba/],
      [['read', 't', 'prefix='], /argument "prefix=" has no value/],
      [['read', 't', 'prefix=a', 'prefix=b'], /argument "prefix=" is given twice/],
      [['count', 't', 'limit=1'], /"limit=1" is not known here/],
      [['set', 't', 'r', 'f=1'], /must be written family:column=value/],
      [['setgcpolicy', 't', 'f', 'none'], /policy/],
    ];
    for (const [words, message] of CASES) {
      const { status, out, err } = await edubba(words);
      assert.equal(status, 2, `${words.join(' ')}: ${err}`);
      assert.equal(out, '');
      assert.match(err, message);
    }
  });

  test('help tells every command, and more of each', async () => {
    const help = await output(['--help']);
    const commands = [...help.matchAll(/^ {2}([a-z]+) {2,}\S.*$/gm)].map(([, name = '']) => name);
    assert.ok(commands.length > 25, commands.join(' '));
    assert.match(help, /Examples:/);
    const withoutTables = ['serve', 'settings', 'token', 'inspect', 'version', 'completion'];
    for (const command of commands.filter((name) => name !== 'help')) {
      const more = await output(['help', command]);
      assert.ok(more.startsWith(`Usage: edubba ${command}`), more);
      // what every command takes comes last, and short
      assert.equal(
        /It takes besides:[^\n]*\n[^\n]*--json[^\n]*\n\s*$/.test(more),
        !withoutTables.includes(command),
        more,
      );
      // options are laid out by commander, as wide as the longest
      const text = more.split('\n').filter((line) => !/^ {2,}-/.test(line));
      for (const line of text) assert.ok(line.length <= 120, `${command}: ${line}`);
    }
    assert.match(await output(['help', 'read']), /cells-per-column=N/);
    assert.match(await output(['help', 'setgcpolicy']), /maxage=10d/);
    assert.match(await output(['inspect', 'sstable', '--help']), /--verify[\s\S]*--entries/);
  });
});

test('commands on the backup store need one: of the command with a directory, of the server with an address', async (t) => {
  const { words } = await TARGETS['a directory'](t);
  await output([...words, 'createtable', 'web', 'families=f']);
  refused(await edubba([...words, 'exportedbackups']), 'FAILED_PRECONDITION', /backup-store/);
  const other = ['--address', '127.0.0.1:1', 'exportedbackups', '--backup-store', 'x'];
  refused(await edubba(other), 'INVALID_ARGUMENT', /--backup-store is for --dir/);
  refused(await edubba([...words, 'exportedbackups', '--backup-store', words[1]!]), 'FAILED_PRECONDITION', /./);
});
