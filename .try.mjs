import { connect, RowMutation } from './dist/src/embedded/index.js';
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
const dir = process.argv[2], SECONDS = Number(process.argv[3]);
let server; const start = async () => { server = spawn('bin/edubba', ['serve','--dir',dir,'--address','127.0.0.1:18086','--tablet-bytes','32MiB'], {stdio:['ignore','ignore','inherit']}); await new Promise(r=>setTimeout(r,3000)); };
await start();
const open = async () => connect('127.0.0.1:18086', { project:'local', instance:'local' });
let db = await open();
await db.createTable('t', { families: { f: { maxVersions: 1 }, g: {} }, changeStreamDays: 1 }).catch(async e => { console.log(e.message); });
let t = db.table('t');
await t.keepChanges?.(1);
const big = Buffer.alloc(60000); for (let i=0;i<big.length;i++) big[i]=Math.random()*256;
const stat={}; const note=(k)=>stat[k]=(stat[k]??0)+1;
const replay = new Map(); let changes = 0, gc = 0, token;
const applyOne = ({ mutation, origin }) => { changes++; if (origin!=='user') gc++; const row = mutation.row; let cells = replay.get(row); if (!cells) replay.set(row, cells=new Map());
  for (const m of mutation.mutations) {
    if (m.kind==='setCell') cells.set(m.family+'\0'+m.qualifier+'\0'+m.timestamp, createHash('md5').update(m.value).digest('hex'));
    else if (m.kind==='deleteFromRow') cells.clear();
    else if (m.kind==='deleteFromFamily') { for (const k of [...cells.keys()]) if (k.startsWith(m.family+'\0')) cells.delete(k); }
    else if (m.kind==='deleteFromColumn') { const p=m.family+'\0'+m.qualifier+'\0'; for (const k of [...cells.keys()]) if (k.startsWith(p)) { const ts=Number(k.slice(p.length)); if ((m.range?.start===undefined||ts>=Number(m.range.start))&&(m.range?.end===undefined||ts<Number(m.range.end))) cells.delete(k);} }
    else note('other '+m.kind);
  } };
let done=false; const writers=[]; const t0=Date.now(); let n=0; let cur=t;
const value = () => { const off=(Math.random()*50000)|0; return Buffer.concat([Buffer.from(String(n)), big.subarray(off, off + (Math.random()<0.3 ? 200 : 9000))]); };
for (let w=0;w<3;w++) writers.push((async()=>{ while(Date.now()-t0<SECONDS*1000){ n++;
  const row='r'+String((Math.random()*300)|0).padStart(4,'0'); const m=new RowMutation(row); const x=Math.random();
  if (x<0.02) m.deleteRow(); else if (x<0.04) m.deleteFamily('g'); else m.set((x<0.8?'f':'g')+':q'+((Math.random()*3)|0), value(), x<0.9?undefined:1000+((Math.random()*50)|0)*1000);
  await cur.apply(m).then(()=>note('ok'), async e=>{ note(e.codeName??e.name); await new Promise(r=>setTimeout(r,200)); }); } })());
const reader=(async()=>{ while(!done){ try { const stream = cur.changes(token===undefined?{since:new Date(t0-5000)}:{token}); for await (const c of stream){ applyOne(c); token=stream.token; if (done) break; } } catch(e){ note('reader '+(e.codeName??e.name)); await new Promise(r=>setTimeout(r,300)); } } })();
const killer=(async()=>{ let k=0; while(Date.now()-t0<(SECONDS-8)*1000){ await new Promise(r=>setTimeout(r,9000)); if (k++%2===0) { for await (const _ of db.compactTables?.(['t']) ?? []); await db.compact?.('t').catch(e=>note('compact '+e.codeName)); } else { server.kill('SIGKILL'); await new Promise(r=>setTimeout(r,500)); await start(); note('kill'); } } })();
await Promise.all([...writers, killer]); await new Promise(r=>setTimeout(r,4000)); await db.compact('t'); await new Promise(r=>setTimeout(r,6000)); done=true;
await cur.apply(new RowMutation('zz').set('g:q','end')); await Promise.race([reader,new Promise(r=>setTimeout(r,3000))]);
let bad=0, cells=0; for await (const row of cur.scan()) { const key=Buffer.isBuffer(row.key)?row.key.toString('latin1'):row.key; const want=new Map(); for (const c of row.cells) { cells++; want.set(c.family+'\0'+Buffer.from(c.qualifier).toString('latin1')+'\0'+c.timestamp, createHash('md5').update(c.value).digest('hex')); }
  const got=replay.get(key)??new Map(); if (key==='zz') continue; for (const [k,v] of want) if (got.get(k)!==v) { bad++; if (bad<5) console.log('differs', key, k, got.get(k), v); } for (const k of got.keys()) if (!want.has(k)) { bad++; if (bad<5) console.log('extra', key, JSON.stringify(k)); } replay.delete(key); }
for (const [key, m] of replay) if (key!=='zz' && m.size>0) { bad++; console.log('extra row', key, m.size); }
console.log(stat, { n, changes, gc, cells, bad }); server.kill('SIGTERM'); process.exit(bad?1:0);
