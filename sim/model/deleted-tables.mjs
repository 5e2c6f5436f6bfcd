/**
 * Model G: a table that is deleted and kept, restored under its name, created again, and removed when its time is over,
 * next to deaths of servers, a second master, late changes and the sweep. One name, one tablet for each table.
 *
 * name: the table that has the schema's file, and the file's version v. rows[id]: w version, l server, f files, g
 * servers whose logs it lists. marks[id]: `keep` a table that is kept, `drop` one whose rows are to be removed. got: the
 * newest acknowledged write of each table; order: when each was deleted. due: tables whose time is over.
 * srv: ok alive, tabs: tablets that it serves, log: its records. mst (masters): e epoch, 0 = ended; plan: its change
 * under way; un: restorations of unknown outcome; sw: files that its sweep has listed.
 * net: changes on their way, each with the epoch of its master. bud: how often each fault or move may happen.
 */
import { clone } from './search.mjs';

function init(cfg) {
  const master = (e) => ({ e, plan: null, un: [], sw: null });
  return {
    lock: 1,
    seen: 1,
    name: { id: 1, v: 1 },
    versions: 1,
    ids: 1,
    rows: { 1: { w: 1, l: 0, f: [], g: [0] } },
    marks: {},
    got: { 1: 0 },
    order: {},
    due: [],
    files: {},
    nf: 1,
    srv: [0, 1].map((i) => ({ ok: 1, tabs: i === 0 ? { 1: 1 } : {}, log: {} })),
    mst: [master(1), master(0)],
    net: [],
    bud: { ...cfg.bud },
    viol: null,
  };
}

/** The newest write of a table that its row leads to. */
function newest(s, id) {
  const { f, g } = s.rows[id] ?? { f: [], g: [] };
  const inLog = (i) => s.srv[i].log?.[id] ?? 0;
  return Math.max(0, ...f.map((file) => s.files[file]?.v ?? 0), ...g.map(inLog));
}

const isKept = (s, id) => s.marks[id] === 'keep' && s.name?.id !== id;
const idsOf = (all) => Object.keys(all).map(Number);

function next(s, cfg) {
  const out = [],
    bug = (x) => cfg.bugs.has(x);
  const add = (l, f) => {
    const t = clone(s);
    f(t);
    t.net.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    out.push([l, t]);
  };
  const end = (t, mi) => {
    t.mst[mi] = { e: 0, plan: null, un: [], sw: null };
  };

  /** A change that reaches the lock service or METADATA: true if it was made. */
  const arrive = (t, m) => {
    if (m.k === 'create') {
      if (m.e !== t.lock && !bug('noGuard')) return false;
      if (t.name !== null) return false;
      t.name = { id: m.id, v: ++t.versions };
      return true;
    }
    if (m.k === 'remove') {
      if (m.e !== t.lock || t.name?.v !== m.v) return false;
      t.order[t.name.id] = 1 + Math.max(0, ...Object.values(t.order));
      t.name = null;
      return true;
    }
    // a commit to METADATA
    if (m.e < t.seen) return false;
    t.seen = m.e;
    const r = t.rows[m.id];
    if (r?.w !== m.w) return false;
    if (m.k === 'gone') {
      delete t.rows[m.id];
      for (const x of t.srv) delete x.tabs[m.id];
    } else t.rows[m.id] = { ...r, ...m.row, w: r.w + 1 };
    return true;
  };

  s.srv.forEach((x, i) => {
    if (!x.ok) return;
    for (const id of idsOf(x.tabs)) {
      if (s.bud.put > 0 && s.name?.id === id)
        add(`S${i} acknowledges a write of table ${id}`, (t) => {
          t.bud.put--;
          t.got[id]++;
          t.srv[i].log[id] = t.got[id];
        });
    }
    for (const id of idsOf(s.rows))
      if (s.rows[id].l === i && !x.tabs[id] && s.name?.id === id && !s.rows[id].let)
        add(`S${i} loads table ${id}`, (t) => {
          t.srv[i].tabs[id] = 1;
        });
    if (s.bud.die > 0 && s.srv.every(({ ok }) => ok))
      add(`S${i} dies`, (t) => {
        t.bud.die--;
        t.srv[i].ok = 0;
        t.srv[i].tabs = {};
      });
  });

  if (s.bud.master > 0 && s.mst[0].e === s.lock)
    add('M0 loses the lock and does not know it, M1 takes it', (t) => {
      t.bud.master--;
      t.mst[1].e = ++t.lock;
      if (s.bud.crash > 0) end(t, 0);
    });
  for (const id of idsOf(s.marks))
    if (s.bud.time > 0 && isKept(s, id) && !s.due.includes(id))
      add(`the time of table ${id} is over`, (t) => {
        t.bud.time--;
        t.due = [...t.due, id].sort();
      });

  s.mst.forEach((M, mi) => {
    if (M.e === 0) return;
    /** A change that is answered, or, as long as answers may be lost, one of unknown outcome. */
    const change = (l, m, done, refused, unknown) => {
      const sent = { ...m, e: M.e };
      add(`M${mi} ${l}`, (t) => {
        const ok = arrive(t, sent);
        if (M.e !== t.lock && !ok) end(t, mi);
        else if (ok) done(t);
        else refused?.(t);
      });
      if (s.bud.lost > 0 && unknown)
        add(`M${mi} ${l}, and gets no answer`, (t) => {
          t.bud.lost--;
          t.net.push(sent);
          unknown(t);
        });
    };
    /** Marks are read and written under the lock, and their outcome is always known. */
    const mark = (l, id, to, done) =>
      add(`M${mi} ${l}`, (t) => {
        if (M.e !== t.lock) return end(t, mi);
        if (to === null) delete t.marks[id];
        else t.marks[id] = to;
        done?.(t);
      });
    const over = (t) => {
      t.mst[mi].plan = null;
    };
    const p = M.plan;

    // deletions
    if (!p && s.name !== null)
      for (const how of ['keep', 'drop'])
        if (s.bud[how] > 0 && s.marks[s.name.id] === undefined)
          mark(`writes the mark of table ${s.name.id}: ${how}`, s.name.id, how, (t) => {
            t.bud[how]--;
            t.mst[mi].plan = { k: 'delete', id: s.name.id, v: s.name.v };
          });
    if (p?.k === 'delete') change(`removes the schema of table ${p.id}`, { k: 'remove', v: p.v }, over, over, over);

    // restorations
    const kept = idsOf(s.marks).filter((id) => isKept(s, id) && !s.due.includes(id));
    if (!p && s.name === null && kept.length > 0 && s.bud.undelete > 0) {
      const id = bug('oldest') ? Math.min(...kept) : Math.max(...kept);
      add(`M${mi} begins to restore table ${id}`, (t) => {
        t.bud.undelete--;
        t.mst[mi].plan = { k: 'restore', id, v: 0 };
        if (bug('unmarkFirst')) delete t.marks[id];
      });
    }
    if (p?.k === 'restore')
      change(
        `writes the schema of table ${p.id}`,
        { k: 'create', id: p.id },
        (t) => {
          if (kept.some((id) => s.order[id] > s.order[p.id])) t.viol = `table ${p.id} was restored before a later one`;
          over(t);
        },
        over,
        (t) => {
          if (!bug('forgetsUnknown')) t.mst[mi].un.push(p.id);
          over(t);
        },
      );
    if (!p && s.name === null && s.bud.create > 0)
      add(`M${mi} creates table ${s.ids + 1}`, (t) => {
        t.bud.create--;
        const id = ++t.ids;
        t.rows[id] = { w: 1, l: null, f: [], g: [] };
        t.got[id] = 0;
        t.name = M.e === t.lock ? { id, v: ++t.versions } : null;
        if (M.e === t.lock) return;
        delete t.rows[id];
        end(t, mi);
      });

    for (const id of idsOf(s.rows)) {
      const r = s.rows[id];
      const lives = s.name?.id === id;
      if (p) continue;
      if (lives && s.marks[id] !== undefined)
        // the schema is written once more, so that a late removal of it is refused
        mark(`finds table ${id} with its mark, and ends that`, id, null, (t) => {
          t.name.v = bug('cancelBlind') ? t.name.v : ++t.versions;
        });
      if (lives && (r.l === null || !s.srv[r.l].ok || r.let))
        s.srv.forEach((x, to) => {
          if (x.ok)
            change(
              `gives table ${id} to S${to}`,
              { k: 'row', id, w: r.w, row: { l: to, let: 0, g: [...new Set([...r.g, to])].sort() } },
              () => {},
              () => {},
              M.sw || s.net.length > 0 ? undefined : () => {},
            );
        });
      if (lives || s.marks[id] === undefined) continue;
      const free = (g) => ({ k: 'row', id, w: r.w, row: { l: null, let: 0, g } });
      if (s.marks[id] === 'keep' && r.l !== null && r.let)
        change(
          `takes S${r.l} out of the row of table ${id}`,
          free(r.g),
          () => {},
          () => {},
          () => {},
        );
      if (s.marks[id] === 'keep' && r.l !== null && !s.srv[r.l].ok)
        change(`takes the dead S${r.l} out of the row of table ${id}`, free(bug('noLogs') ? [] : r.g), () => {});
      // the server writes its memory to a file, and lists it in the row, before it lets the tablet go
      if (s.marks[id] === 'keep' && r.l !== null && s.srv[r.l].ok && !r.let && M.e >= s.seen)
        add(`M${mi} has S${r.l} release table ${id}`, (t) => {
          t.seen = M.e;
          const q = t.rows[id];
          if (!bug('noFlush')) {
            const f = t.nf++;
            t.files[f] = { id, v: newest(s, id) };
            q.f = [f];
          }
          q.g = [];
          q.w++;
          q.let = 1;
          delete t.srv[r.l].tabs[id];
        });
      const isOver = s.due.includes(id) && !M.un.includes(id);
      if (s.marks[id] === 'keep' && isOver && !bug('rowsFirst'))
        mark(`has table ${id} removed, for its time is over`, id, 'drop');
      if (s.marks[id] === 'drop' || (s.marks[id] === 'keep' && isOver && bug('rowsFirst')))
        change(
          `removes the row of table ${id}`,
          { k: 'gone', id, w: r.w },
          () => {},
          () => {},
          () => {},
        );
    }
    for (const id of idsOf(s.marks))
      if (!p && s.marks[id] === 'drop' && s.rows[id] === undefined && s.name?.id !== id)
        mark(`ends the mark of table ${id}, which has no row`, id, null);

    // sweep
    if (!M.sw && s.bud.sweep > 0)
      add(`M${mi} sweep: lists files`, (t) => {
        t.bud.sweep--;
        t.mst[mi].sw = idsOf(t.files);
      });
    const all = Object.values(s.rows);
    if (M.sw && M.e >= s.seen && all.every(({ l }) => l === null || s.srv[l].ok))
      add(`M${mi} sweep: deletes what no row lists`, (t) => {
        t.seen = M.e;
        t.mst[mi].sw = null;
        const listed = idsOf(s.rows)
          .filter((id) => !bug('sweepSkipsKept') || s.name?.id === id)
          .map((id) => s.rows[id]);
        for (const f of M.sw) if (!listed.some((r) => r.f.includes(f))) delete t.files[f];
        t.srv.forEach((x, i) => {
          if (!x.ok && !listed.some(({ g }) => g.includes(i))) x.log = null;
        });
      });
  });

  s.net.forEach((m, n) => {
    if (n && JSON.stringify(m) === JSON.stringify(s.net[n - 1])) return;
    add(`late: ${m.k} ${m.id ?? ''}`, (t) => {
      t.net.splice(n, 1);
      arrive(t, m);
    });
  });
  return out;
}

function bad(s) {
  if (s.viol) return s.viol;
  for (const id of idsOf(s.got)) {
    const lives = s.name?.id === id;
    if (!lives && !isKept(s, id)) continue;
    const what = lives ? 'exists' : 'is kept';
    if (s.rows[id] === undefined) return `table ${id} ${what} and has no row`;
    if (newest(s, id) < s.got[id]) return `table ${id} ${what} without a write that was acknowledged`;
  }
  return null;
}

/** Each row is that of a table that is served, or of one that is kept and that no server has. */
function goal(s) {
  const ids = idsOf(s.rows);
  return (
    ids.every((id) => (s.name?.id === id ? s.marks[id] === undefined : isKept(s, id) && s.rows[id].l === null)) &&
    idsOf(s.marks).every((id) => ids.includes(id)) &&
    (s.name === null || Boolean(s.srv[s.rows[s.name.id]?.l]?.tabs[s.name.id]))
  );
}

export const deletedTables = { init, next, bad, goal };
