/**
 * Model B: the commit log of one server as slots of two files, a and b: exclusive creations whose outcome may be
 * unknown and which may arrive late, the switch between the two writers, the fence, replay. Records are numbered from 1.
 *
 * w (writers): n next slot, fly the creation under way, unk one of unknown outcome. slot[writer][n]: records or the
 * fence 'F'. pend: records that are not acknowledged, ack: acknowledged, fen and fr: fenced, at which slot,
 * flush: records up to it are in files, rec: what the new owner has replayed.
 */
import { clone } from './search.mjs';
function init(cfg) {
  return {
    lease: 1,
    up: 1,
    act: 0,
    w: [
      { n: 0, fly: null, unk: 0 },
      { n: 0, fly: null, unk: 0 },
    ],
    net: [],
    slot: [{}, {}],
    pend: [],
    next: 1,
    ack: [],
    fen: [0, 0],
    fr: [0, 0],
    flush: 0,
    rec: null,
    bud: { ...cfg.bud },
    viol: null,
  };
}
const max = (l) => {
  let m = -1;
  for (const k in l) if (+k > m) m = +k;
  return m;
};
function next(s, cfg) {
  const out = [],
    bug = (x) => cfg.bugs.has(x),
    N = cfg.N || 3;
  const add = (l, f) => {
    const t = clone(s);
    f(t);
    t.net.sort((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1));
    out.push([l, t]);
  };
  if (s.lease && s.bud.lapse)
    add('lease lapses', (t) => {
      t.bud.lapse--;
      t.lease = 0;
    });
  if (s.up) {
    if (s.next <= N)
      add(`record ${s.next} is written by a client`, (t) => {
        t.pend.push(t.next++);
      });
    const a = s.act,
      w = s.w[a];
    if (s.pend.length && !w.fly && !w.unk)
      add(`writer ${'ab'[a]} sends create(slot ${w.n}, [${s.pend}])`, (t) => {
        const m = { a, n: w.n, r: t.pend.slice() };
        t.w[a].fly = m;
        t.net.push(m);
      });
    if (bug('pipeline') && w.fly && s.pend.some((r) => !w.fly.r.includes(r)) && !s.net.some((m) => m.n > w.n))
      add(`writer ${'ab'[a]} sends slot ${w.n + 1} before slot ${w.n} is known`, (t) => {
        t.net.push({ a, n: w.n + 1, r: t.pend.filter((r) => !w.fly.r.includes(r)), second: 1 });
      });
    for (const i of [0, 1]) {
      const q = s.w[i];
      if (q.fly && s.bud.time > 0)
        add(`create(${'ab'[i]}${q.n}) times out`, (t) => {
          t.bud.time--;
          const f = t.w[i].fly;
          t.w[i].fly = null;
          if (bug('skipSlot')) t.w[i].n++;
          else if (bug('timeoutIsFailure')) {
            t.pend = t.pend.filter((r) => !f.r.includes(r));
            t.failed = (t.failed || []).concat(f.r);
          } else t.w[i].unk = f;
        });
      if (q.unk) {
        if (s.net.filter((m) => m.a === i && m.n === q.n).length < 2)
          add(`writer ${'ab'[i]} sends create(slot ${q.n}) again, the same bytes`, (t) => {
            t.w[i].fly = t.w[i].unk;
            t.w[i].unk = 0;
            t.net.push(clone(t.w[i].fly));
          });
      }
    }
    if ((w.fly || w.unk) && s.bud.sw > 0)
      add(`writer ${'ab'[a]} is slow: switch to ${'ab'[1 - a]}`, (t) => {
        t.bud.sw--;
        t.act = 1 - a;
        if (bug('switchDropsPending')) t.pend = t.pend.filter((r) => !(w.fly || w.unk).r.includes(r));
      });
    if (s.bud.flush && s.ack.length)
      add(`minor compaction up to ${Math.max(...s.ack)}, old slots trimmed`, (t) => {
        t.bud.flush--;
        t.flush = Math.max(...t.ack);
        for (const i of [0, 1])
          for (const n in t.slot[i])
            if (t.slot[i][n] !== 'F' && +n < max(t.slot[i]) && t.slot[i][n].every((r) => r <= t.flush))
              delete t.slot[i][n];
      });
  }
  s.net.forEach((m, k) => {
    for (const ans of [1, 0]) {
      if (!ans && !(s.bud.time > 0)) continue;
      add(`create(${'ab'[m.a]}${m.n},[${m.r}]) arrives${ans ? '' : ', answer lost'}`, (t) => {
        t.net.splice(k, 1);
        if (!ans) t.bud.time--;
        const L = t.slot[m.a],
          free = L[m.n] === undefined;
        if (free && t.fen[m.a] && m.n > t.fr[m.a]) t.viol = 'a slot was created behind the fence';
        if (free && t.rec && m.r.some((r) => r > t.flush)) t.viol = 'the log changed after it was replayed';
        if (free) L[m.n] = m.r;
        if (!ans || !t.up) return;
        const w = t.w[m.a];
        if (!m.second && !(w.fly && w.fly.n === m.n)) return; // a late answer to a call that timed out
        const mine = L[m.n] !== 'F' && JSON.stringify(L[m.n]) === JSON.stringify(m.r);
        if (free || (bug('existsIsOk') ? true : !bug('existsIsFence') && mine)) {
          if (!m.second) {
            w.fly = null;
            w.n++;
          }
          if (t.lease || bug('leaseBefore')) for (const r of m.r) if (!t.ack.includes(r)) t.ack.push(r);
          t.ack.sort();
          t.pend = t.pend.filter((r) => !m.r.includes(r));
        } else {
          t.up = 0;
          if (bug('existsIsFence') && L[m.n] !== 'F') t.viol = 'server killed itself though it was not fenced';
        }
      });
    }
  });
  // the new owner; only once the lease has surely lapsed
  if (!s.lease)
    for (const i of [0, 1])
      if (!s.fen[i] && !(bug('fenceOne') && i === 1))
        add(`master fences ${'ab'[i]} at slot ${max(s.slot[i]) + 1}`, (t) => {
          t.fen[i] = 1;
          t.fr[i] = max(t.slot[i]) + 1;
          t.slot[i][t.fr[i]] = 'F';
        });
  if (!s.lease && ((s.fen[0] && s.fen[1]) || (bug('fenceOne') && s.fen[0])) && !s.rec)
    add('the new owner replays', (t) => {
      const r = new Set();
      for (const i of [0, 1]) {
        const ks = Object.keys(t.slot[i])
          .map(Number)
          .sort((x, y) => x - y);
        let p = null;
        for (const n of ks) {
          if (t.slot[i][n] === 'F') break;
          if (p !== null && n !== p + 1 && bug('stopAtHole')) break;
          p = n;
          if (p === null) break;
          t.slot[i][n].forEach((x) => {
            if (x > t.flush) r.add(x);
          });
        }
      }
      t.rec = [...r].sort();
    });
  return out;
}
function bad(s) {
  if (s.viol) return s.viol;
  if (s.rec)
    for (const a of s.ack)
      if (a > s.flush && !s.rec.includes(a)) return `record ${a} was acknowledged and is not replayed`;
  for (const r of s.failed || []) if (s.rec?.includes(r)) return `record ${r} was answered as failed and is replayed`;
  return null;
}
const goal = (s) => s.rec !== null || (s.pend.length === 0 && s.up);

export const slots = { init, next, bad, goal };
