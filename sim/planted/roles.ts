/** Bugs of masters, names, schemas, clocks, and of rows on which transactions follow one another. */
import type { PlantedBug } from './bug.ts';

const WRITES = 'tablet/write/row-writes.ts';

export const ROLE_BUGS: readonly PlantedBug[] = [
  {
    name: 'N1',
    title: 'a master that was replaced removes the rows of tables that it does not know',
    meeting: 'deaths beside a sweep',
    changes: [
      {
        file: 'master/assignment.ts',
        text: "const event = { kind: 'released', atMicros: env.clock.nowMicros() } as const;\n    await servers.checkMastership();",
        wrong: "const event = { kind: 'released', atMicros: env.clock.nowMicros() } as const;",
      },
      {
        file: 'master/assignment.ts',
        text: 'epoch === 0 && !creations.mayHappen(tableId)',
        wrong: '!creations.mayHappen(tableId)',
      },
      {
        file: 'master/assignment.ts',
        text: 'if (rows.some(({ tableId }) => schemas.byId(tableId) === undefined)) isWhole = await schemas.refreshAll();',
        wrong: '',
      },
      {
        file: 'tabletserver/master-fence.ts',
        text: 'if (masterEpoch < this.#highestEpoch)',
        wrong: 'if (masterEpoch < 0)',
      },
    ],
  },
  {
    name: 'N3',
    title: 'a server answers calls that are meant for an earlier one at its address',
    changes: [
      { file: 'protocol/not-serving.ts', text: 'if (to !== undefined && to !== name)', wrong: 'if (to === "")' },
      { file: 'master/server-caller.ts', text: 'if (status.name !== peer.name)', wrong: 'if (status.name === "")' },
    ],
  },
  {
    name: 'N4',
    title: 'a master repeats an attempt to take its lock, and a lock whose grant was not answered is not granted again',
    changes: [
      {
        file: 'master/master-lock.ts',
        text: 'const lock = await env.lockService.tryAcquire(MASTER_PATH, sessionId);',
        wrong: 'const lock = await env.lockService.tryAcquire(MASTER_PATH, sessionId).catch(() => undefined);',
      },
      {
        file: 'env/memory/in-process-lock-service.ts',
        text: 'if (held !== undefined) return held.sessionId === sessionId ? { ...held } : undefined;',
        wrong: 'if (held !== undefined) return undefined;',
      },
    ],
  },
  {
    name: 'N5',
    title: 'a change of a schema is answered before all servers have confirmed it',
    meeting: 'unheard change of a schema',
    changes: [
      {
        file: 'master/servers.ts',
        text: 'await Promise.all([...peers.values()].map((peer) => this.#confirmAt(peer, what, call, until)));',
        wrong: 'if (peers.size > 0) await this.callAll(method, message, until);',
      },
    ],
  },
  {
    name: 'N6',
    title: 'server timestamps follow a wall clock that is set back',
    changes: [
      {
        file: 'tablet/layers/server-time.ts',
        text: 'Math.min(now < last ? last + 1 : now, LATEST_MICROS)',
        wrong: 'Math.min(now, LATEST_MICROS)',
      },
      { file: 'tablet/layers/server-time.ts', text: 'assert(this.#lastMicros >= last,', wrong: 'assert(true,' },
      {
        file: 'tablet/layers/tablet-commits.ts',
        text: 'lastServerMicros >= (before.lastServerMicros ?? 0),',
        wrong: 'true,',
      },
    ],
  },
  {
    name: 'N7',
    title: 'a server that loads a tablet reads its own log, which is trimmed meanwhile',
    changes: [
      {
        file: 'tabletserver/tablet-loader.ts',
        text: 'logs.filter((log) => log === openLog || log !== services.logPath)',
        wrong: 'logs',
      },
    ],
  },
  {
    name: 'N12',
    title: 'a master whose file was removed keeps its lock, and nobody finds it',
    changes: [
      {
        file: 'master/master.ts',
        text: "event.kind !== 'changed' && event.path === MASTER_PATH",
        wrong: "event.kind === 'lock-lost' && event.path === MASTER_PATH",
      },
      {
        file: 'master/master.ts',
        text: 'hasPlace(this.#env.lockService, this.#lock, this.#isStarted)',
        wrong: 'hasPlace(this.#env.lockService, this.#lock, false)',
      },
    ],
  },
  {
    name: 'N13',
    title: 'a recovery goes on after its server was forgotten',
    meeting: 'sweep in a recovery',
    changes: [
      { file: 'master/recoveries.ts', text: 'if (!servers.remembersDead(name)) {', wrong: 'if (name === undefined) {' },
    ],
  },
  {
    name: 'N18',
    title: 'a merge goes on with another tablet than the one that it holds',
    meeting: 'split in a merge',
    changes: [{ file: 'master/tablet-merge.ts', text: 'if (keyOfRow(high) !== keys[1]) throw changed();', wrong: '' }],
  },
  {
    name: 'N23',
    title: 'a look at METADATA is not cut short while it waits for assignments that wait for the root tablet',
    meeting: 'pause under slow appends',
    changes: [
      {
        file: 'master/verification.ts',
        text: 'const failures = await within(settled, context, env.clock);',
        wrong:
          'assert(within !== undefined && context !== undefined && env !== undefined);\n    const failures = await settled;',
      },
    ],
  },
  {
    name: 'H1',
    title: 'a check on a hot row is answered before the change that it saw is durable',
    meeting: 'crash after a check',
    changes: [{ file: WRITES, text: 'else if (turn.seen !== undefined) await turn.seen.done;', wrong: '' }],
  },
  {
    name: 'H2',
    title: 'a change on a hot row is answered before it is durable',
    changes: [
      {
        file: WRITES,
        text: 'if (turn.written !== undefined) await turn.written;\n      else if',
        wrong: 'if (turn.written !== undefined) turn.written.catch(() => {});\n      else if',
      },
    ],
  },
  {
    name: 'H3',
    title: 'a write is answered before its append is durable',
    changes: [
      {
        file: 'commitlog/server-log.ts',
        text: 'const position = await this.#writer.append(parts, { reserved });',
        wrong:
          'batch.resolve(this.#lastPosition + 1); const position = await this.#writer.append(parts, { reserved });',
      },
    ],
  },
];
