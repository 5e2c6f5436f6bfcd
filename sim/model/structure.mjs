/**
 * Model C: METADATA rows keyed by end row: splits, merges, compactions, the sweep's scan row by row, commits of dead
 * servers that are still on their way. Every change of METADATA is a message that may arrive at any later time. A part
 * of a tablet that is split lists only the files that reach it, and a scan finds a key before it reads its row.
 *
 * A backup is a row with the files of a tablet, which the master commits for it; a copy of one, and a table that is
 * restored from it, is a row with the same files. With `own` a server deletes the files that it has written itself as
 * soon as its row does not list them. A backup may also be imported: a file comes from outside, which no row lists until
 * the master commits that of the backup.
 *
 * Keys are the points 1 to K. A row: id, e epoch, w version, l location, f files, it intent of a merge.
 * srv: ok alive, tabs: lo and hi bounds, e, w, f as in the row, c commit under way. cur: the newest acknowledged
 * version of each key. mst, sw, bk, im: masters, their sweeps, and the backups that they make and import. bks: rows of
 * backups, each with the versions that it must have at least. met: the latest master that the servers have met. bud: how often each
 * fault or move may still happen.
 */
import { clone } from './search.mjs';
const ends = (s) =>
  Object.keys(s.rows)
    .map(Number)
    .sort((a, b) => a - b);
const low = (s, k) => {
  let p = 0;
  for (const e of ends(s)) if (e < k) p = e;
  return p;
};
/** The files that have a key above lo, up to hi: a part of a tablet that is split lists no others. */
const reaching = (s, files, lo, hi) =>
  files.filter((f) => s.files[f] === undefined || Object.keys(s.files[f]).some((k) => lo < k && k <= hi));
function init(cfg) {
  const K = cfg.K || 2,
    one = {};
  for (let k = 1; k <= K; k++) one[k] = 1;
  const s = {
    rows: {},
    files: { 0: one },
    nf: 1,
    nid: 2,
    srv: [0, 1, 2].slice(0, cfg.servers || 2).map(() => ({ ok: 1, tabs: {} })),
    cur: { ...one },
    net: [],
    mst: [
      { b: 1, m: null, sw: null, bk: null, im: null },
      { b: 0, m: null, sw: null, bk: null, im: null },
    ],
    bks: [],
    met: 0,
    bud: { ...cfg.bud },
    viol: null,
  };
  const row = (id, l) => ({ id, e: 1, w: 0, l, f: [0], it: null });
  if (cfg.apart) {
    // two tablets that nobody serves, each with a file of its own
    s.files = { 0: { 1: 1 }, 1: { 2: 1 } };
    s.nf = 2;
    s.rows[1] = { ...row('t1', null), f: [0] };
    s.rows[K] = { ...row('t0', null), f: [1] };
  } else if (cfg.two) {
    s.rows[1] = row('t1', 0);
    s.rows[K] = row('t0', 0);
    s.srv[0].tabs.t1 = { lo: 0, hi: 1, e: 1, w: 0, f: [0], c: null };
    s.srv[0].tabs.t0 = { lo: 1, hi: K, e: 1, w: 0, f: [0], c: null };
  } else {
    s.rows[K] = row('t0', 0);
    if (cfg.unloaded) {
      s.rows[K].l = 1;
      s.rows[K].e = 2;
    } else s.srv[0].tabs.t0 = { lo: 0, hi: K, e: 1, w: 0, f: [0], c: null };
  }
  return s;
}
function next(s, cfg) {
  const out = [],
    bug = (x) => cfg.bugs.has(x);
  const add = (l, f) => {
    const t = clone(s);
    f(t);
    t.net.sort((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1));
    out.push([l, t]);
  };
  s.srv.forEach((x, i) => {
    if (!x.ok) return;
    if (s.bud.expire > 0 && s.srv.filter((y) => y.ok).length > 1)
      add(`S${i} dies (its messages live on)`, (t) => {
        t.bud.expire--;
        t.srv[i].ok = 0;
        t.srv[i].tabs = {};
      });
    for (const id in x.tabs) {
      const a = x.tabs[id];
      const free = !a.c;
      if (free && s.bud.put > 0)
        for (let k = a.lo + 1; k <= a.hi; k++)
          add(`S${i} flushes a new write of ${k} in ${id}`, (t) => {
            t.bud.put--;
            const f = t.nf++;
            t.files[f] = { [k]: t.cur[k] + 1 };
            const y = t.srv[i].tabs[id];
            y.c = { f, put: k, v: t.cur[k] + 1 };
            t.net.push({ k: 'c', key: a.hi, id, e: a.e, w: a.w, f: [...a.f, f], by: i, nf: f });
          });
      if (free && s.bud.comp > 0 && (a.f.length > 1 || cfg.compOne))
        add(`S${i} compacts ${id}`, (t) => {
          t.bud.comp--;
          const f = t.nf++,
            o = {};
          for (let k = a.lo + 1; k <= a.hi; k++) o[k] = Math.max(...a.f.map((g) => t.files[g]?.[k] || 0));
          t.files[f] = o;
          t.srv[i].tabs[id].c = { f };
          t.net.push({ k: 'c', key: a.hi, id, e: a.e, w: a.w, f: [f], by: i, nf: f });
        });
      if ((free || bug('splitDuringCommit')) && !a.c?.sp && s.bud.split > 0)
        for (let m = a.lo + 1; m < a.hi; m++)
          add(`S${i} splits ${id} at ${m}`, (t) => {
            t.bud.split--;
            const y = t.srv[i].tabs[id],
              nid = `t${t.nid++}`;
            if (bug('splitUpperFirst')) t.net.push({ k: 's1', key: a.hi, m });
            if (!y.c) y.c = { sp: 1 };
            t.net.push({
              k: 's',
              key: a.hi,
              id,
              e: a.e,
              w: a.w,
              m,
              low: { id: nid, e: a.e, w: 0, l: i, f: reaching(t, a.f, a.lo, m), it: null },
              f: reaching(t, a.f, m, a.hi),
              by: i,
            });
            if (bug('splitServesFirst')) {
              t.srv[i].tabs[nid] = { lo: a.lo, hi: m, e: a.e, w: 0, f: a.f.slice(), c: null };
              t.srv[i].tabs[id].lo = m;
            }
          });
    }
    for (const k of ends(s)) {
      const r = s.rows[k];
      if (r.l === i && !x.tabs[r.id] && !r.it && !s.bud.frozen)
        add(`S${i} loads ${r.id}`, (t) => {
          t.srv[i].tabs[r.id] = { lo: low(t, k), hi: k, e: r.e, w: r.w, f: r.f.slice(), c: null };
        });
    }
  });
  s.net.forEach((m, n) =>
    add(
      `METADATA: ${m.k === 'c' ? `files of ${m.id}` : m.k === 's' ? `split of ${m.id} at ${m.m}` : m.k === 'a' ? `assignment of row ${m.key} to S${m.l}` : m.k === 'B' ? 'row of a backup' : `merge step ${m.k}`} arrives`,
      (t) => {
        t.net.splice(n, 1);
        const r = t.rows[m.key];
        if (m.k === 's1') {
          if (r) r.lo = m.m;
          return;
        }
        if (m.k === 'B') {
          if (m.mi < t.met && !bug('backupNoFence')) return;
          t.bks.push({ f: m.f, least: m.least });
          if (m.im) t.mst[m.mi].im = null;
          else if (t.mst[m.mi].bk?.sent) t.mst[m.mi].bk = null;
          return;
        }
        const cond = r && (m.id === undefined || r.id === m.id) && r.e === m.e && (r.w === m.w || bug('epochOnly'));
        const y = m.by !== undefined ? t.srv[m.by] : null,
          tab = y?.ok && y.tabs[m.id];
        if (m.k === 'c') {
          const ok = cond || (bug('uncond') && r);
          if (ok) {
            r.f = m.f;
            r.w++;
          }
          if (tab?.c && tab.c.f === m.nf) {
            if (ok) {
              if (cfg.own) {
                // files that a backup lists are not the tablet's own any more
                const gone = tab.f.filter((f) => !m.f.includes(f));
                for (const f of gone) if (tab.own?.includes(f)) delete t.files[f];
                tab.own = [...(tab.own ?? []).filter((f) => m.f.includes(f)), m.nf];
              }
              tab.f = m.f;
              tab.w = r.w;
              if (tab.c.put) t.cur[tab.c.put] = Math.max(t.cur[tab.c.put], tab.c.v);
              tab.c = null;
            } else delete y.tabs[m.id];
          }
        }
        if (m.k === 's') {
          const ok = bug('splitOneRow') ? !t.rows[m.m] : cond && !t.rows[m.m];
          if (ok) {
            t.rows[m.m] = m.low;
            if (!bug('splitOneRow')) {
              r.f = m.f;
              r.w++;
            }
          }
          if (tab?.c?.sp) {
            if (ok) {
              const lo = tab.lo;
              tab.lo = m.m;
              tab.f = m.f;
              tab.w = r.w;
              tab.c = null;
              y.tabs[m.low.id] = { lo, hi: m.m, e: m.low.e, w: 0, f: m.low.f.slice(), c: null };
            } else delete y.tabs[m.id];
          } else if (tab && ok && bug('splitDuringCommit')) {
            y.tabs[m.low.id] = { lo: tab.lo, hi: m.m, e: m.low.e, w: 0, f: m.low.f.slice(), c: null };
            tab.lo = m.m;
          }
        }
        if (m.k === 'a') {
          if (cond) {
            r.l = m.l;
            r.e++;
            r.w++;
          }
        }
        if (m.k === 'm1') {
          if (cond) {
            r.it = m.it;
            r.w++;
          }
        }
        if (m.k === 'm2') {
          const ok = cond && (bug('mergeNoIntent') || r.it);
          if (ok) {
            r.f = [...new Set([...r.f, ...m.f])].sort();
            r.w++;
            if (r.it) r.it = { ...r.it, ph: 2 };
          }
        }
        if (m.k === 'm3') {
          const q = t.rows[m.low];
          if (q && (q.id === m.lid || bug('mergeDeleteUncond'))) delete t.rows[m.low];
        }
        if (m.k === 'm4') {
          if (cond) {
            r.it = null;
            r.e++;
            r.w++;
          }
        }
        if (m.k === 'M') {
          const q = t.rows[m.low];
          if (cond && q && q.id === m.lid && q.e === m.le && q.w === m.lw) {
            r.f = [...new Set([...r.f, ...q.f])].sort();
            r.e = Math.max(r.e, q.e) + 1;
            r.w++;
            delete t.rows[m.low];
          }
        }
      },
    ),
  );
  if (s.bud.lose > 0)
    s.net.forEach((m, n) => {
      if (m.by === undefined)
        add(`a message of a master (${m.k}) is lost`, (t) => {
          t.bud.lose--;
          t.net.splice(n, 1);
        });
    });
  if (s.bud.master > 0 && !s.mst[1].b)
    add('M1 becomes master (M0 continues as a zombie)', (t) => {
      t.bud.master--;
      t.mst[1].b = 1;
    });
  s.mst.forEach((M, mi) => {
    if (!M.b) return;
    const ks = ends(s);
    for (const k of ks) {
      const r = s.rows[k];
      const nxt = s.rows[ks[ks.indexOf(k) + 1]];
      if (bug('mergeSmart') && nxt?.it && nxt.it.lid === r.id) {
        /* left to the master that finishes the merge */
      } else if ((r.l !== null && !s.srv[r.l].ok) || (r.l === null && !r.it))
        s.srv.forEach((x, to) => {
          if (x.ok && !s.net.some((m) => m.k === 'a' && m.key === k && m.e === r.e && m.mi === mi))
            add(`M${mi} assigns ${r.id} to S${to}, e${r.e + 1}`, (t) => {
              t.net.push({ k: 'a', key: k, id: r.id, e: r.e, w: r.w, l: to, mi });
            });
        });
      // release for a merge: the handshake with the owner (model A), then location none at the next epoch
      if (
        s.bud.merge > 0 &&
        r.l !== null &&
        s.srv[r.l].ok &&
        ks.length > 1 &&
        (!s.srv[r.l].tabs[r.id] || !s.srv[r.l].tabs[r.id].c)
      )
        add(`M${mi}: S${r.l} unloads ${r.id}`, (t) => {
          delete t.srv[r.l].tabs[r.id];
          const q = t.rows[k];
          q.l = null;
          q.e++;
          q.w++;
        });
      const p = ks[ks.indexOf(k) - 1];
      if (p !== undefined && r.l === null && s.rows[p].l === null && s.bud.merge > 0 && !r.it) {
        const q = s.rows[p];
        if (bug('mergeSteps'))
          add(`M${mi} records the merge intent in row ${k}`, (t) => {
            t.bud.merge--;
            t.net.push({ k: 'm1', key: k, id: r.id, e: r.e, w: r.w, it: { low: p, lid: q.id, ph: 1 } });
          });
        else if (bug('mergeNoIntent'))
          add(`M${mi} merges ${q.id} into ${r.id} in two steps`, (t) => {
            t.bud.merge--;
            t.net.push({ k: 'm2', key: k, id: r.id, e: r.e, w: r.w, f: q.f }, { k: 'm3', low: p, lid: q.id, key: k });
          });
        else
          add(`M${mi} merges ${q.id} into ${r.id}`, (t) => {
            t.bud.merge--;
            t.net.push({ k: 'M', key: k, id: r.id, e: r.e, w: r.w, low: p, lid: q.id, le: q.e, lw: q.w });
          });
      }
      if (r.it && !s.net.some((m) => m.key === k && m.mi === mi)) {
        const q = s.rows[r.it.low];
        if (r.it.ph === 1 && q)
          add(`M${mi} extends row ${k}`, (t) => {
            t.net.push({ k: 'm2', key: k, id: r.id, e: r.e, w: r.w, f: q.f, mi });
          });
        else if (r.it.ph === 2 && q && (q.id === r.it.lid || bug('mergeDeleteUncond')))
          add(`M${mi} deletes row ${r.it.low}`, (t) => {
            t.net.push({ k: 'm3', low: r.it.low, lid: r.it.lid, key: k, mi });
          });
        else
          add(`M${mi} clears the intent of row ${k}`, (t) => {
            t.net.push({ k: 'm4', key: k, id: r.id, e: r.e, w: r.w, mi });
          });
      }
    }
    // sweep, and backups between sweeps
    const w = M.sw;
    const mayBackUp = !M.bk && (!w || bug('backupDuringSweep'));
    if (mayBackUp && s.bud.backup > 0)
      for (const k of ks) {
        const { l, id } = s.rows[k];
        const a = l !== null && s.srv[l].ok && s.srv[l].tabs[id];
        if (a && !a.c)
          add(`M${mi}: S${l} names the files of ${id} for a backup`, (t) => {
            t.bud.backup--;
            t.met = Math.max(t.met, mi);
            const b = t.srv[l].tabs[id];
            if (!bug('backupKeepsOwn')) b.own = [];
            const least = {};
            for (let i = b.lo + 1; i <= b.hi; i++) least[i] = t.cur[i];
            t.mst[mi].bk = { f: b.f.slice(), least };
          });
      }
    if (mayBackUp && s.bud.copy > 0)
      s.bks.forEach((b, n) =>
        add(`M${mi} reads backup ${n} for a copy`, (t) => {
          t.bud.copy--;
          // a master calls every server before it does anything
          if (!bug('copyUnmet')) t.met = Math.max(t.met, mi);
          t.mst[mi].bk = clone(b);
        }),
      );
    if (M.bk && !M.bk.sent)
      add(`M${mi} commits a row of a backup`, (t) => {
        const { f, least } = t.mst[mi].bk;
        t.mst[mi].bk.sent = 1;
        t.net.push({ k: 'B', key: 0, f, least, mi });
      });
    if (s.bud.unbackup > 0 && mi >= s.met)
      s.bks.forEach((_, n) =>
        add(`M${mi} deletes backup ${n}`, (t) => {
          t.bud.unbackup--;
          t.bks.splice(n, 1);
        }),
      );
    // an import: the file is copied, and its row committed between two sweeps
    if (!M.im && s.bud.import > 0)
      add(`M${mi} begins an import`, (t) => {
        t.bud.import--;
        // a master calls every server before it does anything
        if (!bug('importUnmet')) t.met = Math.max(t.met, mi);
        t.mst[mi].im = {};
      });
    if (M.im && M.im.f === undefined)
      add(`M${mi}: a server has copied a file of the import`, (t) => {
        t.mst[mi].im.f = t.nf;
        t.files[t.nf++] = {};
      });
    if (M.im?.f !== undefined && !M.im.sent && !w)
      add(`M${mi} commits a row of an import`, (t) => {
        const { f } = t.mst[mi].im;
        t.mst[mi].im.sent = 1;
        t.net.push({ k: 'B', key: 0, f: [f], least: {}, mi, im: 1 });
      });
    if (!w && s.bud.sweep > 0 && !M.im?.sent && (!M.bk || bug('backupDuringSweep')))
      add(`M${mi} sweep: lists files`, (t) => {
        t.bud.sweep--;
        const { im } = t.mst[mi];
        const listed = Object.keys(t.files).map(Number);
        t.mst[mi].sw = { ph: 1, c: listed.filter((f) => f !== im?.f || bug('sweepTakesImports')) };
      });
    if (
      w &&
      w.ph === 1 &&
      (bug('sweepAnyTime') || ks.every((k) => (s.rows[k].l === null ? !bug('never') : s.srv[s.rows[k].l].ok)))
    )
      add(`M${mi} sweep: asks the servers`, (t) => {
        const h = new Set();
        t.met = Math.max(t.met, mi);
        t.srv.forEach((x) => {
          if (x.ok)
            for (const id in x.tabs) {
              x.tabs[id].f.forEach((f) => h.add(f));
              if (x.tabs[id].c && x.tabs[id].c.f !== undefined) h.add(x.tabs[id].c.f);
            }
        });
        const q = t.mst[mi].sw;
        q.c = q.c.filter((f) => !h.has(f));
        q.ph = 2;
        q.at = bug('sweepDescending') ? 99 : 0;
        q.ids = ends(t)
          .map((k) => k + t.rows[k].id)
          .join();
      });
    if (w && w.ph === 2) {
      const nx =
        w.pk !== undefined && s.rows[w.pk]
          ? w.pk
          : bug('sweepDescending')
            ? ks.filter((k) => k < w.at).pop()
            : ks.find((k) => k > w.at);
      // a scan has found the next key some time before it reads its row
      if (w.pk === undefined && nx !== undefined)
        add(`M${mi} sweep: the next key is ${nx}`, (t) => {
          t.mst[mi].sw.pk = nx;
        });
      else if (nx !== undefined)
        add(`M${mi} sweep: reads row ${nx}`, (t) => {
          const q = t.mst[mi].sw;
          if (!bug('sweepGaps') && !bug('sweepDescending') && low(t, nx) !== q.at) {
            t.mst[mi].sw = null;
            return;
          }
          delete q.pk;
          q.at = nx;
          q.c = q.c.filter((f) => !t.rows[nx].f.includes(f));
        });
      else
        add(`M${mi} sweep: end of scan`, (t) => {
          const q = t.mst[mi].sw;
          if (
            bug('sweepTwice') &&
            q.ids !==
              ends(t)
                .map((k) => k + t.rows[k].id)
                .join()
          ) {
            t.mst[mi].sw = null;
            t.bud.sweep++;
            t.bud.again = (t.bud.again || 0) + 1;
            if (t.bud.again > 2) t.bud.sweep = 0;
          } else q.ph = 3;
          // the servers are asked again, and refuse a master that was replaced
          if (mi < t.met && !bug('sweepOnceAsked')) t.mst[mi].sw = null;
          if (!bug('sweepSkipsBackups')) q.c = q.c.filter((f) => !t.bks.some((b) => b.f.includes(f)));
        });
    }
    if (w && w.ph === 3)
      add(`M${mi} sweep: deletes ${w.c.map((f) => `F${f}`)}`, (t) => {
        for (const f of w.c) delete t.files[f];
        t.mst[mi].sw = null;
      });
  });
  return out;
}
function bad(s, cfg) {
  if (s.viol) return s.viol;
  const ks = ends(s),
    K = cfg.K || 2;
  for (const k of ks) if (s.rows[k].lo !== undefined && s.rows[k].lo !== low(s, k)) return 'METADATA has a hole';
  if (ks[ks.length - 1] !== K) return 'METADATA does not cover the end of the table';
  for (let k = 1; k <= K; k++) {
    const r = s.rows[ks.find((e) => e >= k)];
    for (const f of r.f) if (s.files[f] === undefined) return `row ${r.id} lists F${f}, which is deleted`;
    if (Math.max(0, ...r.f.map((f) => s.files[f][k] || 0)) < s.cur[k])
      return `acknowledged write of ${k} is lost (row ${r.id})`;
    const sv = [];
    s.srv.forEach((x, i) => {
      if (x.ok) for (const id in x.tabs) if (x.tabs[id].lo < k && k <= x.tabs[id].hi) sv.push(`S${i}:${id}`);
    });
    if (sv.length > 1) return `key ${k} is served twice: ${sv}`;
  }
  for (const { f, least } of s.bks) {
    for (const file of f) if (s.files[file] === undefined) return `a backup lists F${file}, which is deleted`;
    for (const k in least)
      if (Math.max(0, ...f.map((file) => s.files[file][k] || 0)) < least[k])
        return `a backup has not the write of ${k} that was acknowledged before it`;
  }
  return null;
}
const goal = (s) =>
  ends(s).every((k) => {
    const r = s.rows[k];
    return r.l !== null && !r.it && s.srv[r.l].ok && s.srv[r.l].tabs[r.id] && s.srv[r.l].tabs[r.id].e === r.e;
  });

export const structure = { init, next, bad, goal };
