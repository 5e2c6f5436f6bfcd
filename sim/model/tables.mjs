/**
 * Model E: creations of tables by two masters, and the removal of rows that a creation has left. A master takes the
 * lock, may lose it without knowing, and goes on. Its calls, and its changes of the lock service, arrive at any later
 * time or never.
 *
 * lock: epoch of the master lock. seen: highest epoch that the server of METADATA was called with; null while METADATA
 * moves. rows[id]: w version, g given to a server. schema[id]: 1 if the table's file exists.
 * mst (masters): e epoch, 0 = ended; view: schemas that it knows; plan: its creation; un: creations of unknown outcome;
 * clean: a row that it is about to remove. net: messages on their way. bud: how often each fault or move may happen.
 */
import { clone } from './search.mjs';

function init(cfg) {
  const master = (e) => ({ e, view: [], plan: null, un: [], clean: null });
  return {
    lock: 1,
    seen: 1,
    rows: {},
    schema: {},
    ids: 0,
    mst: [master(1), master(0)],
    net: [],
    bud: { ...cfg.bud },
  };
}

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
    t.mst[mi] = { e: 0, view: [], plan: null, un: [], clean: null };
  };
  /** METADATA's server compares the epoch of a call with the highest it has seen. */
  const fenced = (t, m) => {
    if (m.e < t.seen && !bug('noFence')) {
      if (t.mst[m.mi].e === m.e) end(t, m.mi);
      return true;
    }
    t.seen = Math.max(t.seen, m.e);
    return false;
  };
  const files = (t) => Object.keys(t.schema).map(Number);

  if (s.bud.master > 0 && s.mst[0].e === s.lock)
    add('M0 loses the lock and does not know it, M1 takes it', (t) => {
      t.bud.master--;
      t.mst[1].e = ++t.lock;
      t.mst[1].view = files(t);
    });

  s.mst.forEach((M, mi) => {
    if (M.e === 0) return;
    const send = (t, m) => t.net.push({ ...m, e: M.e, mi });
    const onItsWay = (k, id) => s.net.some((m) => m.k === k && m.id === id && m.mi === mi && m.e === M.e);
    if (s.bud.crash > 0)
      add(`M${mi} crashes`, (t) => {
        t.bud.crash--;
        end(t, mi);
        // its session ends, and the other one takes the lock
        if (t.lock !== M.e) return;
        end(t, 1 - mi);
        t.mst[1 - mi].e = ++t.lock;
        t.mst[1 - mi].view = files(t);
      });
    if (M.e === s.lock && M.view.length < files(s).length)
      add(`M${mi} hears of the schemas`, (t) => {
        t.mst[mi].view = files(t);
      });
    if (s.seen !== null && s.seen < M.e)
      add(`M${mi} asks the server of METADATA for its status`, (t) => {
        t.seen = M.e;
      });
    if (s.bud.move > 0 && s.seen !== null && M.e === s.lock)
      add(`M${mi} gives METADATA to another server, in the root file`, (t) => {
        t.bud.move--;
        t.seen = null;
        send(t, { k: 'load' });
      });

    // a creation
    const p = M.plan;
    if (!p && s.bud.create > 0)
      add(`M${mi} begins to create table ${s.ids + 1}`, (t) => {
        t.bud.create--;
        t.mst[mi].plan = { id: ++t.ids, ph: 'rows' };
        send(t, { k: 'rows', id: t.ids });
      });
    if (p?.ph === 'schema')
      add(`M${mi} sends the schema of ${p.id}`, (t) => {
        t.mst[mi].plan.ph = 'sent';
        send(t, { k: 'schema', id: p.id });
      });
    if (p?.ph === 'sent' && s.bud.lost > 0)
      add(`M${mi} gets no answer to the schema of ${p.id}`, (t) => {
        t.bud.lost--;
        t.mst[mi].plan = bug('unknownIsFailure') ? { id: p.id, ph: 'undo' } : null;
        t.mst[mi].un.push(p.id);
      });
    if (p?.ph === 'undo')
      add(`M${mi} takes the creation of ${p.id} back`, (t) => {
        t.mst[mi].plan = null;
        send(t, { k: 'remove', id: p.id, w: 1 });
      });

    // the assignment of all
    for (const id of Object.keys(s.rows).map(Number)) {
      const r = s.rows[id];
      if (r.g || p?.id === id) continue;
      if (M.view.includes(id)) {
        if (!onItsWay('assign', id)) add(`M${mi} assigns ${id}`, (t) => send(t, { k: 'assign', id, w: r.w }));
      } else if (!M.clean && !M.un.includes(id) && s.seen !== null && !onItsWay('remove', id))
        add(`M${mi} reads the row of ${id}, of which it knows no schema`, (t) => {
          t.mst[mi].clean = { id, w: r.w, ph: bug('noReread') ? 'check' : 'reread' };
        });
    }
    const c = M.clean;
    if (c?.ph === 'reread')
      add(`M${mi} reads the schemas again`, (t) => {
        t.mst[mi].view = files(t);
        if (t.schema[c.id]) t.mst[mi].clean = null;
        else t.mst[mi].clean.ph = 'check';
      });
    if (c?.ph === 'check')
      add(`M${mi} checks its lock`, (t) => {
        if (t.lock !== M.e && !bug('noCheck')) end(t, mi);
        else t.mst[mi].clean.ph = 'send';
      });
    if (c?.ph === 'send')
      add(`M${mi} removes the row of ${c.id}`, (t) => {
        t.mst[mi].clean = null;
        send(t, { k: 'remove', id: c.id, w: c.w });
      });
  });

  s.net.forEach((m, n) => {
    if (n && JSON.stringify(m) === JSON.stringify(s.net[n - 1])) return;
    const arrives = (l, f) =>
      add(l, (t) => {
        t.net.splice(n, 1);
        const M = t.mst[m.mi];
        f(t, M.e === m.e && M.plan?.id === m.id ? M.plan : undefined);
      });
    if (m.k === 'load')
      arrives(`the new server loads METADATA`, (t) => {
        t.seen = bug('loadNoEpoch') ? 0 : m.e;
      });
    if (m.k === 'schema')
      arrives(`the schema of ${m.id} reaches the lock service`, (t, plan) => {
        const ok = m.e === t.lock || bug('noGuard');
        if (ok) t.schema[m.id] = 1;
        if (plan?.ph !== 'sent') return;
        if (ok) {
          t.mst[m.mi].view = [...new Set([...t.mst[m.mi].view, m.id])];
          t.mst[m.mi].plan = null;
        } else plan.ph = 'undo';
      });
    if (s.seen === null) return;
    if (m.k === 'rows')
      arrives(`METADATA takes the row of ${m.id}`, (t, plan) => {
        if (fenced(t, m)) return;
        t.rows[m.id] = { w: 1, g: 0 };
        if (plan) plan.ph = 'schema';
      });
    if (m.k === 'assign')
      arrives(`METADATA takes the assignment of ${m.id}`, (t) => {
        if (fenced(t, m) || t.rows[m.id]?.w !== m.w) return;
        t.rows[m.id] = { w: m.w + 1, g: 1 };
      });
    if (m.k === 'remove')
      arrives(`METADATA takes the removal of ${m.id}`, (t) => {
        if (fenced(t, m) || t.rows[m.id]?.w !== m.w) return;
        delete t.rows[m.id];
      });
  });
  return out;
}

function bad(s) {
  for (const id in s.schema) if (!s.rows[id]) return `table ${id} exists and has no row`;
  return null;
}

/** Every row is that of a table that is served, or its master may yet write the schema. */
function goal(s) {
  return Object.keys(s.rows).every((id) => {
    const holder = s.mst.find(({ e }) => e === s.lock);
    return holder === undefined || (s.schema[id] && s.rows[id].g) || holder.un.includes(Number(id));
  });
}

export const tables = { init, next, bad, goal };
