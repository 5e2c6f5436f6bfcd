/**
 * Model F: a table of METADATA rows that lie in several tablets of METADATA, whose splits happen between and during the
 * splits, merges, compactions and assignments of users' tablets, and while a sweep scans all rows.
 *
 * Keys are the points 1 to K; a row's key is the end of its tablet. A boundary b of METADATA's tablets: keys below it
 * lie in the lower one; after the row p it is p + 0.5. A commit is applied by one tablet of METADATA, to all of its rows
 * or to none. If they lie in two, the sender reads them, one after the other, and so learns what has happened.
 *
 * rows[k]: lo start, e epoch, w version, c last commit, l server, f files. bounds: boundaries that are committed.
 * ms: a split of METADATA under way: b where, old its rows when they were written to files. srv: ok alive; tabs: lo, e,
 * w, f as in the row, c the commit under way. net: commits on their way, by commit id: rows, and their senders. asks:
 * senders that read the rows of a commit that lie apart. sw: the sweep. bud: how often each move may still happen.
 */
import { clone } from './search.mjs';

const ends = (s) =>
  Object.keys(s.rows)
    .map(Number)
    .sort((a, b) => a - b);
/** The number of the tablet of METADATA that holds the key. */
const holder = (s, k) => s.bounds.filter((b) => b <= k).length;

function init(cfg) {
  const rows = {},
    tabs = {};
  cfg.ends.forEach((k, i) => {
    const lo = cfg.ends[i - 1] ?? 0;
    rows[k] = { lo, e: 1, w: 0, c: 0, l: 0, f: [i] };
    if (!cfg.unloaded) tabs[k] = { lo, e: 1, w: 0, f: [i], c: 0 };
  });
  return {
    rows,
    bounds: [],
    ms: null,
    srv: [
      { ok: 1, tabs },
      { ok: 1, tabs: {} },
    ],
    net: [],
    asks: [],
    files: cfg.ends.map((_, i) => i),
    nf: cfg.ends.length,
    nc: 1,
    sw: null,
    bud: { ...cfg.bud },
    viol: null,
  };
}

const isExpected = (r, want) => (want === null ? r === undefined : r !== undefined && r.e === want.e && r.w === want.w);

/** As `judge` in src/metadata/commit.ts; `rows`: those that the judge has seen. */
function judge(m, rows) {
  if (m.rows.every(({ k, want }) => isExpected(rows[k], want))) return 'apply';
  return m.rows.every(({ k, row }) => (row ? rows[k]?.c === m.id : rows[k] === undefined)) ? 'done' : 'refused';
}

/** The sender learns the outcome. `now`: the row of its tablet, as the outcome shows it. */
function answered(t, m, verdict, now) {
  if (m.by === null) return;
  const y = t.srv[m.by];
  const tab = y.ok ? y.tabs[m.own] : undefined;
  if (tab?.c !== m.id) return;
  if (verdict === 'refused') {
    // what the tablet server does when its row is not as it knows it
    if (now && now.e === tab.e && now.lo === tab.lo) {
      tab.c = 0;
      tab.w = now.w;
      tab.f = now.f.slice();
    } else {
      if (now && now.e === tab.e) t.viol = `S${m.by} gives up a tablet that it has split`;
      delete y.tabs[m.own];
    }
    return;
  }
  delete y.tabs[m.own];
  for (const { k, row } of m.rows) y.tabs[k] = { lo: row.lo, e: row.e, w: row.w, f: row.f.slice(), c: 0 };
}

function next(s, cfg) {
  const out = [],
    bug = (x) => cfg.bugs.has(x);
  const add = (l, f) => {
    const t = clone(s);
    f(t);
    t.net.sort((a, b) => a.id - b.id);
    out.push([l, t]);
  };
  const ks = ends(s);
  /** Sends a commit; `by`: the server whose tablet `own` waits for it. */
  const send = (t, rows, by = null, own = null) => {
    const id = t.nc++;
    const full = rows.map(({ k, want, row }) => ({
      k,
      want: want && { e: want.e, w: want.w },
      row: row && { ...row, w: want ? want.w + 1 : 1, c: id },
    }));
    t.net.push({ id, rows: full, by, own });
    if (by !== null) t.srv[by].tabs[own].c = id;
  };

  // METADATA's own splits
  if (!s.ms && s.bud.msplit > 0) {
    const points = bug('anyKey') ? Array.from({ length: cfg.K - 1 }, (_, i) => i + 1) : ks.slice(0, -1);
    for (const p of points) {
      const b = bug('atKey') ? p : p + 0.5;
      if (!s.bounds.includes(b))
        add(`METADATA is to be split at ${b}`, (t) => {
          t.bud.msplit--;
          t.ms = { b, old: bug('noLock') ? clone(t.rows) : null };
        });
    }
  }
  if (s.ms) {
    const { b, old } = s.ms;
    const exists = s.rows[Math.floor(b)] !== undefined || bug('noRecheck') || bug('anyKey');
    add(`METADATA ${exists ? 'is' : 'is not'} split at ${b}`, (t) => {
      t.ms = null;
      if (!exists) return;
      t.bounds = [...t.bounds, b].sort((x, y) => x - y);
      if (old) t.rows = old;
    });
  }

  // servers
  s.srv.forEach((x, i) => {
    if (!x.ok) return;
    if (s.bud.expire > 0 && s.srv.every((y) => y.ok))
      add(`S${i} dies (its commits are still on their way)`, (t) => {
        t.bud.expire--;
        t.srv[i] = { ok: 0, tabs: {} };
      });
    for (const k of ks) {
      const r = s.rows[k];
      // a load waits for a split of which the tablet is a part
      const isSplit = [...s.net, ...s.asks.map(({ m }) => m)].some(
        (m) => m.by === i && m.rows.some((one) => one.k === k),
      );
      if (r.l === i && !x.tabs[k] && !isSplit)
        add(`S${i} loads ${k}`, (t) => {
          t.srv[i].tabs[k] = { lo: r.lo, e: r.e, w: r.w, f: r.f.slice(), c: 0 };
        });
    }
    for (const k of Object.keys(x.tabs).map(Number)) {
      const a = x.tabs[k];
      if (a.c) continue;
      const now = { e: a.e, w: a.w };
      const row = { lo: a.lo, e: a.e, l: i, f: a.f };
      if (s.bud.comp > 0)
        add(`S${i} compacts ${k}`, (t) => {
          t.bud.comp--;
          const f = t.nf++;
          t.files.push(f);
          send(t, [{ k, want: now, row: { ...row, f: [f] } }], i, k);
        });
      if (s.bud.split > 0)
        for (let m = a.lo + 1; m < k; m++)
          add(`S${i} splits ${k} at ${m}`, (t) => {
            t.bud.split--;
            send(
              t,
              [
                { k: m, want: null, row },
                { k, want: now, row: { ...row, lo: m } },
              ],
              i,
              k,
            );
          });
    }
  });

  // the master
  for (const k of ks) {
    const r = s.rows[k];
    const isSent = s.net.some((m) => m.by === null && m.rows.some((one) => one.k === k));
    if (!isSent && (r.l === null || !s.srv[r.l].ok))
      s.srv.forEach((y, to) => {
        if (y.ok)
          add(`the master assigns ${k} to S${to}`, (t) => send(t, [{ k, want: r, row: { ...r, e: r.e + 1, l: to } }]));
      });
    // the handshake with the owner is in model A
    const isIdle = r.l !== null && s.srv[r.l].ok && s.srv[r.l].tabs[k] && !s.srv[r.l].tabs[k].c;
    if (s.bud.release > 0 && ks.length > 1 && isIdle)
      add(`the master has ${k} released`, (t) => {
        t.bud.release--;
        delete t.srv[r.l].tabs[k];
        t.rows[k] = { ...r, l: null, e: r.e + 1, w: r.w + 1, c: t.nc++ };
      });
    const p = ks[ks.indexOf(k) - 1];
    const low = s.rows[p];
    if (!isSent && low && low.l === null && r.l === null && s.bud.merge > 0 && holder(s, p) === holder(s, k))
      add(`the master merges ${p} into ${k}`, (t) => {
        t.bud.merge--;
        const row = { lo: low.lo, e: Math.max(low.e, r.e) + 1, l: null, f: [...new Set([...r.f, ...low.f])].sort() };
        send(t, [
          { k: p, want: low, row: null },
          { k, want: r, row },
        ]);
      });
  }

  // commits arrive at METADATA
  s.net.forEach((m, n) => {
    const apart = new Set(m.rows.map(({ k }) => holder(s, k))).size > 1;
    const what = `commit ${m.id} (rows ${m.rows.map(({ k }) => k)})`;
    const own = m.rows.at(-1).k;
    const apply = (t) => {
      for (const { k, row } of m.rows) {
        if (row) t.rows[k] = clone(row);
        else delete t.rows[k];
      }
    };
    if (!apart) {
      const verdict = judge(m, s.rows);
      add(`METADATA: ${what}: ${verdict}`, (t) => {
        t.net.splice(n, 1);
        if (verdict === 'apply') apply(t);
        answered(t, m, verdict, t.rows[own]);
      });
      if (s.bud.lost > 0 && verdict === 'apply')
        add(`METADATA: ${what}: ${verdict}, and the answer is lost`, (t) => {
          t.bud.lost--;
          apply(t);
        });
      return;
    }
    if (bug('waitsApart')) return;
    if (bug('half')) {
      const { k, want, row } = m.rows[0];
      add(`METADATA: ${what}: the lower tablet takes its part`, (t) => {
        t.net.splice(n, 1);
        if (isExpected(t.rows[k], want)) {
          if (row) t.rows[k] = clone(row);
          else delete t.rows[k];
        }
        answered(t, m, 'refused', t.rows[own]);
      });
      return;
    }
    add(`METADATA: ${what} lies apart: its sender reads the rows`, (t) => {
      t.net.splice(n, 1);
      if (bug('refusedApart')) answered(t, m, 'refused', t.rows[own]);
      else t.asks.push({ m, seen: {} });
    });
  });
  s.asks.forEach(({ m, seen }, n) => {
    const left = m.rows.find(({ k }) => !(k in seen));
    add(`the sender of ${m.id} reads ${left.k}`, (t) => {
      const ask = t.asks[n];
      ask.seen[left.k] = t.rows[left.k] ?? null;
      if (Object.keys(ask.seen).length < m.rows.length) return;
      t.asks.splice(n, 1);
      const rows = {};
      for (const k in ask.seen) if (ask.seen[k]) rows[k] = ask.seen[k];
      answered(t, m, judge(m, rows) === 'done' ? 'done' : 'refused', rows[m.rows.at(-1).k]);
    });
  });

  // the sweep: `at` is the last key that it has read, `to` the end of the tablet of METADATA that it reads
  const w = s.sw;
  if (!w && s.bud.sweep > 0)
    add('the sweep lists files and asks the servers', (t) => {
      t.bud.sweep--;
      const held = new Set(t.srv.flatMap(({ tabs }) => Object.values(tabs).flatMap(({ f }) => f)));
      const written = t.net.filter(({ by }) => by !== null && t.srv[by].ok);
      for (const m of written) for (const { row } of m.rows) for (const f of row?.f ?? []) held.add(f);
      t.sw = { c: t.files.filter((f) => !held.has(f)), at: 0, to: null, pk: null };
    });
  if (w && w.to === null)
    add('the sweep finds the next tablet of METADATA', (t) => {
      t.sw.to = t.bounds.find((b) => b > w.at + 0.25) ?? cfg.K + 1;
    });
  if (w && w.to !== null) {
    // a server whose tablet ends earlier refuses the read, and the next tablet is located anew
    const served = s.bounds.find((b) => b > w.at + 0.25) ?? cfg.K + 1;
    if (served < w.to && !bug('shortRead'))
      add('the tablet that the sweep reads was split: it locates it anew', (t) => {
        t.sw.to = null;
      });
    else {
      const inIt = ks.filter((k) => k > w.at && k < Math.min(served, w.to));
      const nx = w.pk !== null && s.rows[w.pk] ? w.pk : inIt[0];
      if (bug('peek') && w.pk === null && nx !== undefined)
        add(`the next key of the sweep is ${nx}`, (t) => {
          t.sw.pk = nx;
        });
      else if (nx !== undefined)
        add(`the sweep reads row ${nx}`, (t) => {
          t.sw.pk = null;
          t.sw.at = nx;
          t.sw.c = t.sw.c.filter((f) => !t.rows[nx].f.includes(f));
        });
      else if (w.to > cfg.K)
        add(`the sweep deletes ${w.c.map((f) => `F${f}`)}`, (t) => {
          t.files = t.files.filter((f) => !w.c.includes(f));
          t.sw = null;
        });
      else
        add('the sweep is at the end of a tablet of METADATA', (t) => {
          t.sw.at = Math.max(w.at, w.to - 0.25);
          t.sw.to = null;
        });
    }
  }
  return out;
}

function bad(s, cfg) {
  if (s.viol) return s.viol;
  const ks = ends(s);
  let lo = 0;
  for (const k of ks) {
    const r = s.rows[k];
    if (r.lo !== lo) return `METADATA does not partition the table at ${lo}`;
    lo = k;
    const b = s.bounds.find((one) => r.lo + 1 < one && one <= k);
    if (b !== undefined) return `tablet ${k} lies across the boundary ${b} of METADATA: it can never be split`;
    for (const f of r.f) if (!s.files.includes(f)) return `row ${k} lists F${f}, which is deleted`;
    for (const { ok, tabs } of s.srv) {
      const tab = ok ? tabs[k] : undefined;
      if (tab && tab.e === r.e && tab.w > r.w) return `a change of row ${k} is lost`;
    }
  }
  if (lo !== cfg.K) return 'METADATA does not cover the end of the table';
  return null;
}

const goal = (s) =>
  s.net.length === 0 &&
  s.asks.length === 0 &&
  !s.ms &&
  ends(s).every((k) => {
    const r = s.rows[k];
    const tab = r.l === null || !s.srv[r.l].ok ? undefined : s.srv[r.l].tabs[k];
    return tab !== undefined && tab.e === r.e && tab.w === r.w && !tab.c;
  });

export const metadataSplits = { init, next, bad, goal };
