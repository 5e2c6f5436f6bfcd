/**
 * Model D: transactions on one hot row of one server, whose lock is released when their record has its place in the
 * log. A value is the list of the operations that made it, so a lost or a dirty update shows.
 *
 * Operations (`cfg.ops`): i reads the row and appends itself to the list, w replaces the list by itself, c reads in a
 * transaction and writes nothing, r is a plain read. ops: kind, phase (0 new, 1 begun, 2 answered, 3 failed: surely
 * without effect, 4 failed: outcome unknown), value answered, before: the operations that had ended when it began,
 * seen: sequence number of the newest pending record that it saw (0: none).
 *
 * queue: records in log order that are not applied, as { seq, op, value }. flying: number of them in the append under
 * way; written: that append is on the disk. refused: sequence numbers that were refused. locked: operation that has
 * read and not decided. memory, disk: the value in the memtable and in the durable log. owner: 0 this server, 1 the
 * next one, which has replayed the disk. bud: how often each fault may still happen.
 */
import { clone } from './search.mjs';

const NEW = 0;
const BEGUN = 1;
const ANSWERED = 2;
const FAILED = 3;
const UNKNOWN = 4;

function init(cfg) {
  return {
    ops: cfg.ops.map((kind) => ({ kind, phase: NEW, value: null, before: 0, seen: 0 })),
    queue: [],
    flying: 0,
    written: false,
    refused: [],
    nextSeq: 1,
    locked: -1,
    memory: [],
    disk: [],
    up: true,
    lease: true,
    owner: 0,
    bud: { ...cfg.bud },
  };
}

const ended = (s) => s.ops.reduce((set, { phase }, i) => (phase >= ANSWERED ? set | (1 << i) : set), 0);

/** True when some order of the operations explains all answers and, if given, a read now that returns `read`. */
function explains(s, read) {
  const must = s.ops.reduce((set, { phase }, i) => (phase === ANSWERED ? set | (1 << i) : set), 0);
  const same = (a, b) => a.join() === b.join();
  const place = (done, value) => {
    if ((done & must) === must && (read === undefined || same(value, read))) return true;
    return s.ops.some(({ kind, phase, value: answer, before }, i) => {
      // an operation that failed without effect has no place in the order
      const late = s.ops.some((other, j) => before & (1 << j) && !(done & (1 << j)) && other.phase === ANSWERED);
      if (done & (1 << i) || phase === NEW || phase === FAILED || late) return false;
      const next = kind === 'i' ? [...value, i] : kind === 'w' ? [i] : value;
      if (phase === ANSWERED && kind !== 'w' && !same(answer, next)) return false;
      return place(done | (1 << i), next);
    });
  };
  return place(0, []);
}

function begin(s, i) {
  s.ops[i].phase = BEGUN;
  s.ops[i].before = ended(s);
}

function answer(s, i, value) {
  s.ops[i].phase = ANSWERED;
  s.ops[i].value = value;
}

function log(s, op, value) {
  s.queue.push({ seq: s.nextSeq++, op, value });
}

/** What begun operations still expect is unknown to their callers. */
function die(s) {
  s.up = false;
  s.lease = false;
  for (const op of s.ops) if (op.phase === BEGUN) op.phase = UNKNOWN;
  s.queue = [];
  s.flying = 0;
  s.written = false;
  s.locked = -1;
}

/** Ends the operations that wait for a record which they saw. */
function settle(s, cfg, seqs, isDurable) {
  s.ops.forEach((op, i) => {
    if (op.kind !== 'c' || op.phase !== BEGUN || s.locked === i || !seqs.includes(op.seen)) return;
    if (!isDurable) op.phase = FAILED;
    else if (s.lease || cfg.bugs.has('leaseBefore')) op.phase = ANSWERED;
    else op.phase = UNKNOWN;
  });
}

/** Begins an operation on the row, or continues that of the transaction that holds it. */
function operations(s, bug, add) {
  if (s.locked >= 0) return decision(s, bug, add);
  s.ops.forEach(({ kind, phase }, i) => {
    if (phase !== NEW || s.ops.some((other, j) => j < i && other.kind === kind && other.phase === NEW)) return;
    const newest = s.queue[s.queue.length - 1];
    if (kind === 'r') {
      if (!s.lease) return;
      add(`r${i} reads`, (t) => {
        begin(t, i);
        answer(t, i, bug('readPending') && newest ? newest.value : t.memory);
      });
    } else if (kind === 'w') {
      add(`w${i} has its place in the log`, (t) => {
        begin(t, i);
        log(t, i, [i]);
      });
    } else {
      const isSeen = newest && !bug('pendingUnseen') && !(bug('plainUnseen') && s.ops[newest.op].kind === 'w');
      add(`${kind}${i} locks the row and reads`, (t) => {
        begin(t, i);
        t.locked = i;
        t.ops[i].value = isSeen ? newest.value : t.memory;
        t.ops[i].seen = isSeen ? newest.seq : 0;
      });
    }
  });
}

function decision(s, bug, add) {
  const i = s.locked;
  const { kind, value, seen } = s.ops[i];
  const isPending = s.queue.some(({ seq }) => seq === seen);
  if (s.refused.includes(seen) && !bug('unchecked')) {
    add(`${kind}${i} fails: it saw a record that was refused`, (t) => {
      t.locked = -1;
      t.ops[i].phase = FAILED;
    });
  } else if (kind === 'i') {
    add(`i${i} has its place in the log`, (t) => {
      t.locked = -1;
      t.ops[i].value = [...value, i];
      log(t, i, [...value, i]);
      if (bug('earlyAnswer')) t.ops[i].phase = ANSWERED;
    });
  } else {
    add(`c${i} decides to write nothing`, (t) => {
      t.locked = -1;
      if (isPending && !bug('earlyCheck')) return;
      t.ops[i].phase = t.lease ? ANSWERED : UNKNOWN;
    });
  }
}

function appends(s, cfg, bug, add) {
  if (s.flying === 0) {
    for (let count = 1; count <= s.queue.length; count++)
      add(`an append of ${count} records begins`, (t) => {
        t.flying = count;
      });
    return;
  }
  const batch = s.queue.slice(0, s.flying);
  const seqs = batch.map(({ seq }) => seq);
  if (s.written) {
    add(`the append is applied${s.lease ? '' : ', the lease has lapsed'}`, (t) => {
      t.memory = batch[batch.length - 1].value;
      t.queue = t.queue.slice(t.flying);
      t.flying = 0;
      t.written = false;
      for (const { op, value } of batch) {
        if (t.ops[op].phase !== BEGUN) continue;
        t.ops[op].value = value;
        t.ops[op].phase = t.lease || bug('leaseBefore') ? ANSWERED : UNKNOWN;
      }
      settle(t, cfg, seqs, true);
    });
    return;
  }
  if (s.owner === 1) {
    // a fenced log takes no appends: the server ends
    add('the append meets the fence', die);
    if (s.bud.gone > 0)
      add('the append goes to a log that was deleted, fence and all', (t) => {
        t.bud.gone--;
        t.written = true;
      });
    return;
  }
  add('the append is on the disk', (t) => {
    t.written = true;
    t.disk = batch[batch.length - 1].value;
  });
  if (s.bud.refuse > 0)
    add('the append is refused: the disk is full', (t) => {
      t.bud.refuse--;
      const lost = bug('refusedAlone') ? batch : t.queue;
      t.queue = t.queue.slice(lost.length);
      t.flying = 0;
      t.refused.push(...lost.map(({ seq }) => seq));
      for (const { op } of lost) if (t.ops[op].phase === BEGUN) t.ops[op].phase = FAILED;
      settle(t, cfg, t.refused, false);
    });
  if (s.bud.error > 0)
    add('the append fails, its outcome is unknown', (t) => {
      t.bud.error--;
      die(t);
    });
}

function next(s, cfg) {
  const moves = [];
  const bug = (name) => cfg.bugs.has(name);
  const add = (label, change) => {
    const t = clone(s);
    change(t);
    moves.push([label, t]);
  };
  if (s.up) {
    operations(s, bug, add);
    appends(s, cfg, bug, add);
    if (s.bud.crash > 0)
      add('the server crashes', (t) => {
        t.bud.crash--;
        die(t);
      });
    if (s.lease && s.bud.lapse > 0)
      add('the lease lapses', (t) => {
        t.bud.lapse--;
        t.lease = false;
      });
    if (!s.lease && s.owner === 0)
      add('the lease is renewed', (t) => {
        t.lease = true;
      });
  }
  if (!s.lease && s.owner === 0)
    add('another server fences and replays the log', (t) => {
      t.owner = 1;
    });
  if (s.owner === 1)
    s.ops.forEach(({ kind, phase }, i) => {
      if (kind !== 'r' || phase !== NEW) return;
      add(`r${i} reads at the next server`, (t) => {
        begin(t, i);
        answer(t, i, t.disk);
      });
    });
  return moves;
}

function bad(s) {
  const served = s.owner === 1 ? s.disk : s.up && s.lease ? s.memory : undefined;
  if (explains(s, served)) return null;
  return served === undefined ? 'answers are not linearizable' : `not linearizable: a read now returns [${served}]`;
}

/** All operations have ended. */
const goal = (s) => s.ops.every(({ phase }) => phase !== BEGUN);

export const hotRows = { init, next, bad, goal };
