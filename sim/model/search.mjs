/**
 * Breadth-first search over explicit states, so that the trace of a violation is a shortest one; and random walks, for
 * spaces that are too large.
 *
 * A model exports
 * - `init(cfg)`: the first state, plain data;
 * - `next(state, cfg)`: the moves, as [label, next state];
 * - `bad(state, cfg)`: the broken rule, or null;
 * - `goal(state, cfg)`: true where the system is well again. With `wedge` every state must be able to reach such a one.
 */
import { createHash } from 'node:crypto';

export const clone = (o) => {
  if (o === null || typeof o !== 'object') return o;
  if (Array.isArray(o)) {
    const r = new Array(o.length);
    for (let i = 0; i < o.length; i++) r[i] = clone(o[i]);
    return r;
  }
  const r = {};
  for (const k in o) r[k] = clone(o[k]);
  return r;
};
const key = (m, s) =>
  createHash('md5')
    .update(m.key ? m.key(s) : JSON.stringify(s))
    .digest('latin1');
/** Searches until the space or a limit is exhausted, or a rule is broken. Visited states are kept by their hashes. */
export function bfs(m, cfg, { max = 300000, ms = 60000, wedge = false } = {}) {
  const t0 = Date.now(),
    s0 = m.init(cfg),
    seen = new Map([[key(m, s0), 0]]),
    par = [-1],
    lab = [''];
  let cur = [[0, s0]],
    depth = 0,
    trunc = false,
    n = 1;
  const rev = wedge ? [[]] : null,
    goals = [];
  const trace = (i) => {
    const t = [];
    while (i > 0) {
      t.push(lab[i]);
      i = par[i];
    }
    return t.reverse();
  };
  if (wedge && m.goal(s0, cfg)) goals.push(0);
  while (cur.length && !trunc) {
    const nxt = [];
    depth++;
    for (const [i, s] of cur) {
      for (const [l, t] of m.next(s, cfg)) {
        const k = key(m, t);
        let j = seen.get(k);
        if (j === undefined) {
          j = n++;
          seen.set(k, j);
          par.push(i);
          lab.push(l);
          if (rev) rev.push([]);
          const b = m.bad(t, cfg);
          if (b) return { bad: b, trace: trace(j), states: n, depth, ms: Date.now() - t0 };
          if (rev && m.goal(t, cfg)) goals.push(j);
          nxt.push([j, t]);
        }
        if (rev) rev[j].push(i);
      }
      if (n > max || Date.now() - t0 > ms) {
        trunc = true;
        break;
      }
    }
    cur = nxt;
  }
  const r = { bad: null, states: n, depth, complete: !trunc, ms: Date.now() - t0 };
  if (rev && !trunc) {
    // backwards from the goals
    const ok = new Uint8Array(n),
      st = goals.slice();
    for (const g of goals) ok[g] = 1;
    while (st.length)
      for (const p of rev[st.pop()])
        if (!ok[p]) {
          ok[p] = 1;
          st.push(p);
        }
    for (let i = 0; i < n; i++)
      if (!ok[i]) {
        r.bad = 'wedged: no way back to the goal';
        r.trace = trace(i);
        break;
      }
    r.goals = goals.length;
  }
  return r;
}
/** Seeded random walks; returns the shortest violation that they met. */
export function walk(m, cfg, { ms = 20000, len = 80, seed = 1 } = {}) {
  let x = seed >>> 0 || 1;
  const rnd = (k) => {
    x ^= x << 13;
    x >>>= 0;
    x ^= x >>> 17;
    x ^= x << 5;
    x >>>= 0;
    return x % k;
  };
  const t0 = Date.now();
  let steps = 0,
    runs = 0,
    best = null;
  while (Date.now() - t0 < ms) {
    let s = m.init(cfg);
    const t = [];
    runs++;
    for (let i = 0; i < len; i++) {
      const a = m.next(s, cfg);
      if (!a.length) break;
      const [l, u] = a[rnd(a.length)];
      t.push(l);
      s = u;
      steps++;
      const b = m.bad(s, cfg);
      if (b) {
        if (!best || t.length < best.trace.length) {
          best = { bad: b, trace: t.slice(), len: t.length };
          len = Math.max(4, t.length - 1);
        }
        break;
      }
    }
  }
  return { ...(best || { bad: null }), states: steps, runs, walk: true, ms: Date.now() - t0 };
}
