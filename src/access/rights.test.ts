import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Policy, TableSchema } from '../model/index.ts';
import { type FamilyRight, PERMISSIONS, PERMISSIONS_OF_RIGHTS, type PolicySource, ROLES } from '../service/index.ts';
import { coversFamily, Rights } from './rights.ts';

const INSTANCE = 'projects/p/instances/i';
const TABLE = `${INSTANCE}/tables/t`;
const VIEW = `${TABLE}/authorizedViews/v`;
const family = (name: string): string => `${TABLE}/columnFamilies/${name}`;
const FAMILIES = ['f', 'g', 'constructor'];
const RESOURCES = [INSTANCE, TABLE, VIEW, ...FAMILIES.map(family)];
const PRINCIPALS = ['token:a', 'token:b', 'anonymous'];
const RIGHTS = Object.keys(PERMISSIONS_OF_RIGHTS) as FamilyRight[];

/** Policies in a map. */
class Source implements PolicySource {
  readonly policies: Map<string, Policy>;
  changes = 0;
  isCurrent = true;

  constructor(policies: Iterable<readonly [string, Policy]> = []) {
    this.policies = new Map(policies);
  }

  async start(): Promise<void> {}
  stop(): void {}

  get isEmpty(): boolean {
    return this.policies.size === 0;
  }

  set(resource: string, role: string, ...members: string[]): void {
    this.policies.set(resource, { bindings: [{ role, members }] });
    this.changes++;
  }

  find(resource: string): Policy | undefined {
    return this.policies.get(resource);
  }

  ofFamilies(table: string): ReadonlyMap<string, Policy> {
    const prefix = `${table}/columnFamilies/`;
    return new Map(
      [...this.policies]
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, policy]) => [name.slice(prefix.length), policy]),
    );
  }

  schemaOf(): TableSchema | undefined {
    return undefined;
  }
}

/** The rule, word by word: does one of the resources' policies give it, or has none of them any? */
function mayByRule(
  { policies }: Source,
  owners: readonly string[],
  principal: string,
  permission: string,
  chain: readonly string[],
): boolean {
  const isMeant = (member: string): boolean =>
    member === principal || member === 'allUsers' || (member === 'allAuthenticatedUsers' && principal !== 'anonymous');
  if (owners.some(isMeant)) return true;
  const found = chain.flatMap((resource) => policies.get(resource) ?? []);
  if (found.length === 0) return owners.length === 0;
  return found.some(({ bindings }) =>
    bindings.some(({ role, members }) => ROLES.get(role)!.has(permission) && members.some(isMeant)),
  );
}

describe('rights', () => {
  const policy: fc.Arbitrary<Policy> = fc.record({
    bindings: fc.array(
      fc.record({
        role: fc.constantFrom(...ROLES.keys()),
        members: fc.uniqueArray(fc.constantFrom('token:a', 'token:b', 'token:c', 'allUsers', 'allAuthenticatedUsers'), {
          minLength: 1,
          maxLength: 2,
        }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  });
  const policies = fc.dictionary(fc.constantFrom(...RESOURCES), policy, { maxKeys: 4 });
  const owners = fc.subarray(['token:a', 'token:z'], { maxLength: 1 });

  test('are those of the rule, for every principal, permission and resource', () => {
    fc.assert(
      fc.property(policies, owners, (given, chosen) => {
        const source = new Source(Object.entries(given));
        const rights = new Rights(source, chosen);
        for (const principal of PRINCIPALS) {
          for (const permission of PERMISSIONS) {
            const may = (...chain: string[]): boolean => mayByRule(source, chosen, principal, permission, chain);
            assert.equal(rights.allows(principal, permission, INSTANCE), may(INSTANCE));
            assert.equal(rights.allows(principal, permission, TABLE), may(INSTANCE, TABLE));
            assert.equal(rights.allows(principal, permission, VIEW), may(INSTANCE, TABLE, VIEW));
          }
          for (const right of RIGHTS) {
            const { table: permission, view = permission } = PERMISSIONS_OF_RIGHTS[right];
            const onTable = rights.onFamilies(principal, right, TABLE, '');
            const through = rights.onFamilies(principal, right, TABLE, VIEW);
            for (const name of FAMILIES) {
              const may = mayByRule(source, chosen, principal, permission, [INSTANCE, TABLE, family(name)]);
              assert.equal(coversFamily(onTable, name), may, `${principal} ${right} ${name}`);
              assert.equal(rights.allows(principal, permission, family(name)), may);
              const byView = view !== permission && mayByRule(source, chosen, principal, view, [INSTANCE, TABLE, VIEW]);
              const viewHasPolicy = [INSTANCE, TABLE, VIEW].some((each) => given[each] !== undefined);
              if (byView && viewHasPolicy) assert.ok(coversFamily(through, name), 'a view gives what is in it');
            }
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  test('follow changes of policies', () => {
    const source = new Source();
    const rights = new Rights(source, []);
    const reads = (name: string): boolean => coversFamily(rights.onFamilies('token:a', 'read', TABLE, ''), name);
    assert.ok(rights.isOpen && reads('f'));
    source.set(family('f'), 'roles/bigtable.reader', 'token:b');
    assert.deepEqual([rights.isOpen, reads('f'), reads('g')], [false, false, true]);
    source.set(family('f'), 'roles/bigtable.reader', 'token:a');
    assert.deepEqual([reads('f'), reads('g')], [true, true]);
    source.set(TABLE, 'roles/bigtable.viewer', 'token:a');
    assert.deepEqual([reads('f'), reads('g')], [true, false]);
    source.set(INSTANCE, 'roles/bigtable.reader', 'token:a');
    assert.deepEqual([reads('f'), reads('g')], [true, true]);
  });

  test('of a policy that is not there yet are those that it would give', () => {
    const source = new Source();
    source.set(INSTANCE, 'roles/bigtable.admin', 'token:a');
    const rights = new Rights(source, ['token:z']);
    const would = (principal: string, resource: string, ...members: string[]): boolean =>
      rights.wouldAllow(principal, 'bigtable.tables.setIamPolicy', resource, {
        bindings: members.length === 0 ? [] : [{ role: 'roles/bigtable.admin', members }],
      });
    assert.ok(would('token:a', TABLE, 'token:b'), 'what the instance gives stays');
    assert.ok(!would('token:a', INSTANCE, 'token:b'));
    assert.ok(would('token:b', INSTANCE, 'token:b'));
    assert.ok(!would('token:a', INSTANCE), 'where there are owners, no policy is nobody’s right');
    assert.ok(would('token:z', INSTANCE), 'owners keep their rights');
    assert.ok(new Rights(source, []).wouldAllow('token:a', 'bigtable.tables.setIamPolicy', INSTANCE, { bindings: [] }));
  });

  test('on the whole database are those of its owners, or of who may change the default instance', () => {
    const source = new Source();
    assert.ok(new Rights(source, []).isOperator('token:a'));
    assert.ok(!new Rights(source, ['token:z']).isOperator('token:a'));
    assert.ok(new Rights(source, ['token:z']).isOperator('token:z'));
    source.set('projects/local/instances/local', 'roles/bigtable.admin', 'token:b');
    assert.ok(!new Rights(source, []).isOperator('token:a'));
    assert.ok(new Rights(source, []).isOperator('token:b'));
  });

  test('are not there on what is no resource', () => {
    const source = new Source();
    source.set(INSTANCE, 'roles/owner', 'allUsers');
    const rights = new Rights(source, []);
    for (const name of ['', 'x', `${INSTANCE}/tables/`, `${INSTANCE}/tables/a/b`, `${TABLE}/columnFamilies/f/x`])
      assert.ok(!rights.allows('token:a', 'bigtable.tables.get', name), name);
  });
});
