/**
 * Model A: writes, reads, leases, the fence, recovery, METADATA commits, moves, two masters, one or two levels of
 * METADATA, deletion of logs, the sweep of files.
 *
 * Tablet 0's row is the root file, changed atomically in the lock service; with `depth` 2 tablet 1's row is the value of
 * tablet 0. The user's tablet is the last one; its value is the number of the write that it holds.
 *
 * row: l location, e epoch, w version, f files, p redo point [epoch, sequence], g logs that may hold later records,
 *   c id of the last change, o the last sequence number by log.
 * srv (servers): up runs, sess its session exists, lease held, n next slot of its log, q next sequence number,
 *   ap append under way, tabs its tablets, fl floors: epochs that it no longer loads, id of its next commit.
 * tab (a tablet of a server): s state (L loading, R row read, S serving, Z unloading), e epoch, v value, q redo point of the value,
 *   d dirty, r its row as known, m commit under way.
 * log[server][slot]: a record or the fence 'F'. del: logs deleted. gf: logs fenced. rp: newest epoch that has replayed.
 * mst (masters): b it believes to be the master, plan of its one job, sw the sweep under way.
 * net: messages on their way: c commit, l load, u unload. ops: w writes and r reads of clients, s state
 *   (0 new, 1 begun, 2 answered, 3 outcome unknown), v value, pre the operations answered before it began.
 * bud: how often each fault or move may still happen. viol: the inner invariant that was broken.
 */
import { clone } from './search.mjs';
const gt = (a, b) => a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);
const hasBug = (cfg, b) => cfg.bugs.has(b);
function init(cfg) {
  const D = cfg.depth || 1,
    NS = cfg.servers || 2;
  const row = () => ({ l: 0, e: 1, w: 0, f: [0], p: [0, 0], g: [0], c: '', o: {} });
  const s = {
    srv: [],
    log: [],
    del: [],
    gf: [],
    mst: [
      { b: 1, plan: null, sw: null },
      { b: 0, plan: null, sw: null },
    ],
    row: row(),
    files: {},
    nf: 2,
    net: [],
    ops: [],
    bud: { ...cfg.bud },
    rp: [0, 0],
    viol: null,
  };
  const v = (i) => (i === D - 1 ? 0 : { ...row(), f: [1] });
  s.files[0] = v(0);
  if (D === 2) s.files[1] = v(1);
  for (let i = 0; i < NS; i++) {
    s.srv.push({
      up: 1,
      sess: 1,
      lease: 1,
      n: 0,
      q: 1,
      ap: null,
      tabs: new Array(D).fill(null),
      fl: new Array(D).fill(0),
      id: 0,
    });
    s.log.push({});
    s.del.push(0);
    s.gf.push(0);
  }
  for (let t = 0; t < D; t++)
    s.srv[0].tabs[t] = { s: 'S', e: 1, v: v(t), q: [0, 0], d: 0, r: t === 0 ? row() : { ...row(), f: [1] }, m: null };
  for (const k of cfg.ops) s.ops.push({ k, s: 0, v: 0, pre: 0 });
  return s;
}
const acked = (s) => s.ops.reduce((a, o, i) => a | (o.s === 2 ? 1 << i : 0), 0);
/** True when some order of the operations explains all answers and, now, a read of `rv`. */
function explainsRead(s, rv) {
  const n = s.ops.length,
    need = acked(s);
  const rec = (done, cur) => {
    if ((done & need) === need && cur === rv) return true;
    for (let i = 0; i < n; i++) {
      const o = s.ops[i];
      if ((done >> i) & 1 || o.s === 0 || o.pre & ~done) continue;
      if (o.k === 'w') {
        if (rec(done | (1 << i), i + 1)) return true;
      } else if (o.s === 2 && o.v === cur && rec(done | (1 << i), cur)) return true;
    }
    return false;
  };
  return rec(0, 0);
}
const holder = (s) => s.srv.findIndex((x) => x.up && x.lease && x.tabs[0] && x.tabs[0].s === 'S');
function readRow(s, t) {
  if (t === 0) return s.row;
  const h = holder(s);
  return h < 0 ? null : s.srv[h].tabs[0].v;
}
function maxSlot(l) {
  let m = -1;
  for (const k in l) if (+k > m) m = +k;
  return m;
}
function die(s, i) {
  const x = s.srv[i];
  x.up = 0;
  x.lease = 0;
  if (x.ap && x.ap.op !== undefined) s.ops[x.ap.op].s = 3;
  x.ap = null;
  x.tabs = x.tabs.map(() => null);
  for (const o of s.ops) if (o.at === i && o.s === 1) o.s = 3;
}
function match(cfg, cur, m) {
  if (hasBug(cfg, 'uncondCommit') && m.by[0] === 's') return true;
  if (hasBug(cfg, 'uncondAssign') && m.by[0] === 'm') return true;
  if (hasBug(cfg, 'uncondBack') && m.by[0] === 'b') return true;
  return cur.e === m.ee && (hasBug(cfg, 'epochOnly') || cur.w === m.ev);
}
function reply(s, _cfg, m, ok, cur) {
  if (m.by[0] === 'b') {
    if (ok || cur.c === m.id) s.net.push({ k: 'l', t: m.t, e: m.nr.e, to: m.nr.l });
  } else if (m.by[0] === 's') {
    const x = s.srv[m.by[1]];
    const tab = x.tabs[m.t];
    if (!x.up || !tab?.m || tab.m.id !== m.id) return;
    if (ok || cur.c === m.id) {
      tab.r = clone(cur);
      tab.d = gt(tab.q, tab.m.u) ? 1 : 0;
      tab.m = null;
    } else if (cur.e !== tab.e) x.tabs[m.t] = null;
    else {
      tab.r = clone(cur);
      tab.m = null;
    }
  } else {
    const M = s.mst[m.by[1]];
    if (!M.plan || M.plan.id !== m.id) return;
    if (ok || cur.c === m.id) s.net.push({ k: 'l', t: m.t, e: m.nr.e, to: m.nr.l });
    M.plan = null;
  }
}
function next(s, cfg) {
  const out = [],
    D = cfg.depth || 1,
    U = D - 1,
    bug = (x) => hasBug(cfg, x);
  const add = (l, f) => {
    const t = clone(s);
    f(t);
    t.net.sort((a, c) => (JSON.stringify(a) < JSON.stringify(c) ? -1 : 1));
    out.push([l, t]);
  };
  const spend = (t, k) => {
    t.bud[k]--;
  };
  s.srv.forEach((x, i) => {
    // time and faults
    if (x.sess && x.lease && s.bud.lapse > 0)
      add(`lease of S${i} lapses (S${i} paused or cut off)`, (t) => {
        spend(t, 'lapse');
        t.srv[i].lease = 0;
      });
    if (x.sess && !x.lease && x.up)
      add(`S${i} renews`, (t) => {
        t.srv[i].lease = 1;
      });
    if (x.sess && (!x.lease || bug('drift')) && s.bud.expire > 0 && s.srv.some((y, j) => j !== i && y.sess && y.up))
      add(`session of S${i} expires`, (t) => {
        spend(t, 'expire');
        t.srv[i].sess = 0;
        if (!bug('drift')) t.srv[i].lease = 0;
      });
    if (x.up && s.bud.crash > 0 && (!x.sess || s.srv.some((y, j) => j !== i && y.sess && y.up)))
      add(`S${i} crashes`, (t) => {
        spend(t, 'crash');
        die(t, i);
      });
    if (!x.up && x.sess)
      add(`session of crashed S${i} expires`, (t) => {
        t.srv[i].sess = 0;
      });
    if (!x.up) return;
    // client operations on the user tablet
    const tu = x.tabs[U];
    if (tu && tu.s === 'S')
      s.ops.forEach((o, j) => {
        if (o.s !== 0 || s.ops.some((p, k) => k < j && p.k === o.k && p.s === 0)) return;
        if (o.k === 'w' && !x.ap && (x.lease || !bug('leaseBefore')))
          add(`write w${j + 1} starts at S${i}`, (t) => {
            t.ops[j].s = 1;
            t.ops[j].pre = acked(t);
            t.ops[j].at = i;
            t.srv[i].ap = { t: U, v: j + 1, op: j, e: tu.e };
            if (bug('applyBefore')) t.srv[i].tabs[U].v = j + 1;
          });
        if (o.k === 'r')
          add(`read r${j + 1} starts at S${i}`, (t) => {
            t.ops[j].s = 1;
            t.ops[j].pre = acked(t);
            t.ops[j].at = i;
          });
      });
    s.ops.forEach((o, j) => {
      if (o.k === 'r' && o.s === 1 && o.at === i) {
        if (tu && tu.s === 'S' && (x.lease || bug('readNoLease')))
          add(`r${j + 1} answers ${tu.v}`, (t) => {
            t.ops[j].s = 2;
            t.ops[j].v = tu.v;
          });
        else
          add(`r${j + 1} refused`, (t) => {
            t.ops[j].s = 3;
          });
      }
    });
    if (x.ap && !x.ap.done)
      add(`S${i} appends slot ${x.n}`, (t) => {
        const y = t.srv[i],
          a = y.ap;
        if (t.log[i][y.n] !== undefined) return die(t, i);
        if (t.gf[i] && !t.del[i] && !bug('noFence')) t.viol = 'an append succeeded after the fence';
        else if (a.e < t.rp[a.t] && !t.del[i] && !bug('noInner'))
          t.viol = 'a record of an old epoch reached a log that the new owner has replayed';
        a.q = y.q++;
        t.log[i][y.n++] = { t: a.t, e: a.e, q: a.q, v: a.v };
        a.done = 1;
      });
    if (x.ap?.done)
      add(
        `S${i} applies${x.lease || bug('leaseBefore') ? ' and acknowledges' : ', lease lapsed: outcome unknown'}`,
        (t) => {
          const y = t.srv[i],
            a = y.ap,
            tab = y.tabs[a.t];
          y.ap = null;
          const live = tab && tab.e === a.e && tab.v !== undefined;
          if (live) {
            tab.v = clone(a.v);
            tab.q = [a.e, a.q];
            tab.d = 1;
          }
          const ok = y.lease || bug('leaseBefore');
          if (a.op !== undefined) t.ops[a.op].s = ok && (live || bug('noDrain')) ? 2 : 3;
          else if (ok && live) reply(t, cfg, a.cas, true, a.v);
        },
      );
    // METADATA commits executed by the server of tablet 0 (depth 2)
    if (D === 2 && x.tabs[0] && x.tabs[0].s === 'S' && !x.ap)
      s.net.forEach((m, k) => {
        if (m.k !== 'c' || m.t !== 1) return;
        const cur = x.tabs[0].v;
        if (match(cfg, cur, m))
          add(`S${i} (METADATA) takes commit ${m.id}`, (t) => {
            t.net.splice(k, 1);
            t.srv[i].ap = { t: 0, v: { ...clone(m.nr), w: cur.w + 1 }, e: x.tabs[0].e, cas: m };
          });
        else if (x.lease)
          add(`S${i} (METADATA) refuses commit ${m.id}`, (t) => {
            t.net.splice(k, 1);
            reply(t, cfg, m, false, cur);
          });
      });
    // what it has released, and no master has given away
    x.tabs.forEach((tab, ti) => {
      const r = readRow(s, ti);
      if (tab || !r || r.l !== i || r.e !== x.fl[ti] || s.bud.back <= 0) return;
      add(`S${i} takes T${ti} back at e${r.e + 1}`, (t) => {
        spend(t, 'back');
        const id = `b${i}.${r.e}.${ti}`;
        const nr = { ...clone(r), l: i, e: r.e + 1, g: [...new Set([...r.g, i])], c: id };
        t.net.push({ k: 'c', t: ti, ee: r.e, ev: r.w, nr, id, by: ['b', i] });
      });
    });
    x.tabs.forEach((tab, ti) => {
      if (!tab) return;
      const busy = x.ap && x.ap.t === ti;
      // minor compaction
      if (
        ((tab.s === 'S' && s.bud.mc > 0) || tab.s === 'Z') &&
        tab.d &&
        !tab.m &&
        !(tab.s === 'Z' && busy && !bug('noDrain'))
      )
        add(`S${i} writes SSTable F${s.nf} of T${ti}`, (t) => {
          const y = t.srv[i],
            a = y.tabs[ti];
          if (tab.s === 'S') spend(t, 'mc');
          const f = t.nf++,
            id = `s${i}.${y.id++}`;
          t.files[f] = clone(a.v);
          const nr = { ...clone(a.r), f: [f], p: a.q.slice(), g: [i], o: { [i]: a.q[1] }, c: id };
          a.m = { id, f, u: a.q.slice(), nr, ee: a.e, ev: a.r.w };
          t.net.push({ k: 'c', t: ti, ee: a.e, ev: a.r.w, nr, id, by: ['s', i] });
          if (bug('redoEarly'))
            for (const n in t.log[i]) {
              const r = t.log[i][n];
              if (r !== 'F' && r.t === ti && +n < y.n - 1 + 1) delete t.log[i][n];
            }
        });
      if (tab.m && s.bud.dup > 0 && !(s.net.filter((m) => m.id === tab.m.id).length > 1))
        add(`S${i} times out, sends commit ${tab.m.id} again`, (t) => {
          spend(t, 'dup');
          const m = t.srv[i].tabs[ti].m;
          t.net.push({ k: 'c', t: ti, ee: m.ee, ev: m.ev, nr: m.nr, id: m.id, by: ['s', i] });
        });
      if (tab.m && s.bud.dup > 0 && bug('timeoutIsFailure'))
        add(`S${i} times out, drops F${tab.m.f} as failed`, (t) => {
          spend(t, 'dup');
          delete t.files[tab.m.f];
          t.srv[i].tabs[ti].m = null;
        });
      if (tab.m && !s.net.some((m) => m.id === tab.m.id) && !x.ap?.cas)
        add(`S${i} sends commit ${tab.m.id} again`, (t) => {
          const m = t.srv[i].tabs[ti].m;
          t.net.push({ k: 'c', t: ti, ee: m.ee, ev: m.ev, nr: m.nr, id: m.id, by: ['s', i] });
        });
      if (tab.s === 'Z' && (!tab.d || bug('moveNoSecond')) && !tab.m && (!busy || bug('noDrain')))
        add(`S${i} has unloaded T${ti}`, (t) => {
          t.srv[i].tabs[ti] = null;
          t.srv[i].fl[ti] = tab.e;
        });
      if (tab.s === 'L')
        add(`S${i} reads the row of T${ti}`, (t) => {
          const r = readRow(t, ti);
          if (!r) return;
          if (!bug('loadNoCheck') && (r.l !== i || r.e !== tab.e)) {
            t.srv[i].tabs[ti] = null;
            return;
          }
          const a = t.srv[i].tabs[ti];
          a.r = clone(r);
          a.s = 'R';
        });
      if (tab.s === 'R')
        add(`S${i} replays and serves T${ti}`, (t) => {
          const a = t.srv[i].tabs[ti],
            r = a.r;
          const recs = [];
          let g = r.g;
          if (bug('lastLogOnly')) g = g.filter((l) => l !== i).slice(-1);
          for (const l of g)
            for (const n in t.log[l]) {
              const c = t.log[l][n];
              if (c === 'F' || c.t !== ti) continue;
              if (bug('pairRedo') ? c.q > (r.o[l] || 0) : gt([c.e, c.q], r.p)) recs.push(c);
            }
          recs.sort((y, z) => (bug('seqOrder') ? y.q - z.q || y.e - z.e : y.e - z.e || y.q - z.q));
          for (const f of r.f)
            if (t.files[f] === undefined) {
              const now = readRow(t, ti);
              if (now && now.l === i && now.e === a.e && t.srv[i].sess) t.viol = `load finds file F${f} missing`;
              t.srv[i].tabs[ti] = null;
              return;
            }
          const last = recs[recs.length - 1];
          a.v = clone(last ? last.v : t.files[r.f[0]]);
          a.q = last ? [last.e, last.q] : r.p.slice();
          if (a.q[0] < r.p[0] && bug('pairRedo')) a.q = r.p.slice();
          a.d = recs.length ? 1 : 0;
          a.s = 'S';
          t.rp[ti] = Math.max(t.rp[ti], a.e);
        });
    });
    if (s.bud.trim > 0) {
      const dead = Object.keys(s.log[i]).filter((n) => {
        const r = s.log[i][n];
        if (r === 'F') return false;
        const tab = x.tabs[r.t];
        return tab?.r && tab.s === 'S' && !gt([r.e, r.q], tab.r.p) && (bug('trimAll') || +n < maxSlot(s.log[i]));
      });
      if (dead.length)
        add(`S${i} trims slots ${dead}`, (t) => {
          spend(t, 'trim');
          for (const n of dead) delete t.log[i][n];
        });
    }
  });
  // the network
  s.net.forEach((m, k) => {
    if (k && JSON.stringify(m) === JSON.stringify(s.net[k - 1])) return;
    if (m.k === 'c' && m.t === 0)
      for (const lost of s.bud.lost > 0 ? [0, 1] : [0])
        add(
          `root file: commit ${m.id} arrives: ${match(cfg, s.row, m) ? 'ok' : 'refused'}${lost ? ' (answer lost)' : ''}`,
          (t) => {
            t.net.splice(k, 1);
            const ok = match(cfg, t.row, m);
            if (ok) t.row = { ...clone(m.nr), w: t.row.w + 1 };
            if (lost) {
              spend(t, 'lost');
              if (m.by[0] === 'm') t.mst[m.by[1]].plan = null;
            } else reply(t, cfg, m, ok, t.row);
          },
        );
    if (m.k === 'l')
      add(`load(T${m.t},e${m.e}) reaches S${m.to}`, (t) => {
        t.net.splice(k, 1);
        const y = t.srv[m.to];
        if (y.up && !y.tabs[m.t] && (bug('noFloor') || y.fl[m.t] < m.e))
          y.tabs[m.t] = { s: 'L', e: m.e, v: undefined, q: [0, 0], d: 0, r: null, m: null };
      });
    if (m.k === 'u')
      add(`unload(T${m.t},e${m.e}) reaches S${m.to}`, (t) => {
        t.net.splice(k, 1);
        const y = t.srv[m.to],
          tab = y.tabs[m.t];
        if (!y.up) return;
        if (!tab) y.fl[m.t] = Math.max(y.fl[m.t], m.e);
        else if (tab.e === m.e || bug('unloadNoEpoch')) {
          if (tab.s === 'S') tab.s = 'Z';
          else if (tab.s !== 'Z' && !bug('noFloor')) {
            y.tabs[m.t] = null;
            y.fl[m.t] = Math.max(y.fl[m.t], m.e);
          }
        }
      });
  });
  // masters
  if (s.bud.master > 0 && !s.mst[1].b)
    add('M1 becomes master (M0 continues as a zombie)', (t) => {
      spend(t, 'master');
      t.mst[1].b = 1;
    });
  s.mst.forEach((M, mi) => {
    if (!M.b) return;
    s.srv.forEach((x, i) => {
      if (!x.sess && !s.gf[i] && !bug('noFence'))
        add(`M${mi} fences the log of S${i} at slot ${maxSlot(s.log[i]) + 1}`, (t) => {
          t.gf[i] = 1;
          t.log[i][maxSlot(t.log[i]) + 1] = 'F';
        });
    });
    if (M.plan) {
      const p = M.plan;
      if (p.ph === 'u') {
        const y = s.srv[p.row.l],
          tab = y.tabs[p.t];
        if (!y.sess)
          add(`M${mi} drops its plan`, (t) => {
            t.mst[mi].plan = null;
          });
        else if (y.up && (bug('noFloor') ? !tab || (tab.s !== 'S' && tab.s !== 'Z') : !tab && y.fl[p.t] >= p.e))
          add(`S${p.row.l} tells M${mi} it does not serve T${p.t} at e${p.e}`, (t) => {
            t.mst[mi].plan.ph = 'u2';
          });
      }
      if (p.ph === 'u2')
        add(`M${mi} reads row of T${p.t}`, (t) => {
          const r = readRow(t, p.t);
          if (!r) return;
          const q = t.mst[mi].plan;
          if (r.e !== q.e) {
            t.mst[mi].plan = null;
            return;
          }
          q.row = clone(r);
          q.ph = 'a';
        });
      if (
        (p.ph === 'u2' || p.ph === 'a' || p.ph === 'c') &&
        D === 2 &&
        p.t === 1 &&
        !readRow(s, 1) &&
        !bug('masterWaits')
      )
        add(`M${mi} puts its job aside: METADATA is not served`, (t) => {
          t.mst[mi].plan = null;
        });
      if (p.ph === 'a')
        add(`M${mi} sends: T${p.t} -> S${p.to}, e${p.row.e + 1}`, (t) => {
          const q = t.mst[mi].plan;
          q.ph = 'c';
          q.id = `m${mi}.${p.row.e}.${p.t}`;
          const g =
            bug('clearLogs') || (bug('moveNoSecond') && p.mv)
              ? [p.to]
              : bug('noLogAdd')
                ? q.row.g
                : [...new Set([...q.row.g, p.to])];
          t.net.push({
            k: 'c',
            t: p.t,
            ee: q.row.e,
            ev: q.row.w,
            nr: { ...q.row, l: p.to, e: q.row.e + 1, g, c: q.id },
            id: q.id,
            by: ['m', mi],
          });
        });
      if (p.ph === 'c' && s.bud.lost > 0 && D === 2)
        add(`M${mi} gives up waiting`, (t) => {
          spend(t, 'lost');
          t.mst[mi].plan = null;
        });
      if (
        p.ph === 'c' &&
        D === 2 &&
        !s.net.some((m) => m.id === p.id) &&
        !s.srv.some((x) => x.ap?.cas && x.ap.cas.id === p.id)
      )
        add(`M${mi}: answer never comes, reads again`, (t) => {
          t.mst[mi].plan = null;
        });
    } else
      for (let ti = 0; ti < D; ti++) {
        const r = readRow(s, ti);
        if (!r) continue;
        const x = s.srv[r.l];
        for (let to = 0; to < s.srv.length; to++) {
          if (to === r.l || !s.srv[to].sess || !s.srv[to].up) continue;
          if (!x.sess && (s.gf[r.l] || bug('noFence') || bug('fenceLate')))
            add(`M${mi} plans T${ti}: S${r.l} is dead, e${r.e} -> S${to}`, (t) => {
              t.mst[mi].plan = { t: ti, e: r.e, row: clone(r), to, ph: 'a' };
            });
          if (x.sess && s.bud.move > 0)
            add(`M${mi} asks S${r.l} to unload T${ti} e${r.e} (for S${to})`, (t) => {
              spend(t, 'move');
              t.mst[mi].plan = { t: ti, e: r.e, row: clone(r), to, ph: 'u', mv: 1 };
              t.net.push({ k: 'u', t: ti, e: r.e, to: r.l });
            });
        }
        if (
          x.sess &&
          x.up &&
          !x.tabs[ti] &&
          r.e > 1 &&
          (bug('noFloor') || x.fl[ti] < r.e) &&
          !s.net.some((m) => m.k === 'l' && m.t === ti && m.e === r.e)
        )
          add(`M${mi} sends load(T${ti},e${r.e}) to S${r.l} again`, (t) => {
            t.net.push({ k: 'l', t: ti, e: r.e, to: r.l });
          });
        // a live server has released the tablet at this epoch: it is assigned anew, perhaps to the same server
        if (x.sess && x.up && !x.tabs[ti] && x.fl[ti] >= r.e)
          for (let to = 0; to < s.srv.length; to++)
            if (s.srv[to].sess && s.srv[to].up)
              add(`M${mi} plans T${ti}: released by S${r.l}, e${r.e} -> S${to}`, (t) => {
                t.mst[mi].plan = { t: ti, e: r.e, row: clone(r), to, ph: 'a' };
              });
      }
    // dead logs
    if (s.bud.gc > 0)
      s.srv.forEach((x, i) => {
        if (x.sess || s.del[i] || !(s.gf[i] || bug('noFence'))) return;
        let used = false;
        for (let ti = 0; ti < D; ti++) {
          const r = readRow(s, ti);
          if (!r || r.l === i || (!bug('logGoneAfterLoad') && r.g.includes(i))) used = true;
          if (bug('logGoneAfterLoad') && r && !(s.srv[r.l].tabs[ti] && s.srv[r.l].tabs[ti].s === 'S')) used = true;
        }
        if (!used)
          add(`M${mi} deletes the log of dead S${i}, fence and all`, (t) => {
            spend(t, 'gc');
            t.log[i] = {};
            t.del[i] = 1;
          });
      });
    // the sweep of files: list, ask, scan, delete
    const w = M.sw;
    if (!w && s.bud.sweep > 0)
      add(`M${mi} lists files`, (t) => {
        spend(t, 'sweep');
        t.mst[mi].sw = { ph: bug('sweepScanFirst') ? 2 : 1, c: Object.keys(t.files).map(Number) };
      });
    const ask = (t) => {
      const held = new Set();
      t.srv.forEach((x, _i) => {
        if (x.up && x.sess)
          x.tabs.forEach((tab) => {
            if (tab?.r) tab.r.f.forEach((f) => held.add(f));
            if (tab?.m) held.add(tab.m.f);
          });
      });
      return held;
    };
    if (w && w.ph === 1) {
      const _dead = s.srv.some((x, _i) => !x.sess || !x.up);
      let safe = true;
      if (!bug('sweepDeadInFlight')) {
        s.srv.forEach((x, _i) => {
          if (!x.up && x.sess) safe = false;
        });
        for (let ti = 0; ti < D; ti++) {
          const r = readRow(s, ti);
          if (!r || !s.srv[r.l].sess || !s.srv[r.l].up) safe = false;
        }
      }
      if (safe)
        add(`M${mi} asks the live servers`, (t) => {
          const h = bug('sweepNoAsk') ? new Set() : ask(t);
          const q = t.mst[mi].sw;
          q.c = q.c.filter((f) => !h.has(f));
          q.ph = bug('sweepScanFirst') ? 3 : 2;
        });
    }
    if (w && w.ph === 2) {
      const rows = [];
      for (let ti = 0; ti < D; ti++) rows.push(readRow(s, ti));
      if (rows.every((r) => r))
        add(`M${mi} scans METADATA`, (t) => {
          const q = t.mst[mi].sw;
          const u = new Set(rows.flatMap((r) => r.f));
          q.c = q.c.filter((f) => !u.has(f));
          q.ph = bug('sweepScanFirst') ? 1 : 3;
        });
    }
    if (w && w.ph === 3)
      add(`M${mi} deletes ${w.c.map((f) => `F${f}`)}`, (t) => {
        for (const f of w.c) delete t.files[f];
        t.mst[mi].sw = null;
      });
  });
  return out;
}
function bad(s, cfg) {
  if (s.viol) return s.viol;
  const U = (cfg.depth || 1) - 1;
  for (let t = 0; t <= U; t++) {
    const sv = s.srv.filter((x) => x.up && x.lease && x.tabs[t] && x.tabs[t].s === 'S');
    if (sv.length > 1) return `T${t} served twice`;
  }
  for (const f of s.row.f) if (s.files[f] === undefined) return `referenced file F${f} is gone`;
  if (U === 1) {
    const r = readRow(s, 1);
    if (r) for (const f of r.f) if (s.files[f] === undefined) return `referenced file F${f} is gone`;
  }
  for (const x of s.srv)
    if (x.up && x.lease && x.tabs[U] && x.tabs[U].s === 'S') {
      if (!explainsRead(s, x.tabs[U].v)) return `not linearizable: a read now returns ${x.tabs[U].v}`;
    }
  for (const o of s.ops)
    if (o.k === 'r' && o.s === 2) {
      if (!explainsAnswers(s)) return 'not linearizable: an answered read was stale or a phantom';
      break;
    }
  return null;
}
function explainsAnswers(s) {
  const n = s.ops.length,
    need = acked(s);
  const rec = (done, cur) => {
    if ((done & need) === need) return true;
    for (let i = 0; i < n; i++) {
      const o = s.ops[i];
      if ((done >> i) & 1 || o.s === 0 || o.pre & ~done) continue;
      if (o.k === 'w') {
        if (rec(done | (1 << i), i + 1)) return true;
      } else if (o.s === 2 && o.v === cur && rec(done | (1 << i), cur)) return true;
    }
    return false;
  };
  return rec(0, 0);
}
function goal(s, cfg) {
  const D = cfg.depth || 1;
  for (let t = 0; t < D; t++) {
    const r = readRow(s, t);
    if (!r) return false;
    const x = s.srv[r.l],
      tab = x.tabs[t];
    if (!(x.up && x.sess && x.lease && tab && tab.s === 'S' && tab.e === r.e)) return false;
  }
  return true;
}

export const serving = { init, next, bad, goal };
