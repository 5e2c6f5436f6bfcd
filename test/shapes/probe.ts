/**
 * Loaded before the program that is judged: counts the objects that V8 keeps as dictionaries. The inspector finds the
 * objects that live; the methods of their classes are then watched, for objects that live for one call only.
 */
import { Session } from 'node:inspector';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
import type { ClassCount, Message, ProgramClass } from './messages.ts';

type Prototype = Record<PropertyKey, unknown>;

interface Class {
  readonly name: string;
  readonly prototype: Prototype;
}

setFlagsFromString('--allow-natives-syntax');
const hasFastProperties = runInThisContext('(object) => %HasFastProperties(object)') as (object: object) => boolean;
/** The counts of all watched classes, by prototype. */
const counts = new Map<object, ClassCount>();

/** Every live object, functions too. */
function liveObjects(): object[] {
  const session = new Session();
  session.connect();
  // a session to its own thread calls back before `post` returns
  session.post('Runtime.evaluate', { expression: 'Object.prototype' }, (_evaluating, { result }) => {
    const query = { prototypeObjectId: result.objectId! };
    session.post('Runtime.queryObjects', query, (_querying, { objects }) => {
      const functionDeclaration = 'function () { globalThis.liveObjects = this; }';
      session.post('Runtime.callFunctionOn', { objectId: objects.objectId!, functionDeclaration });
    });
  });
  session.disconnect();
  const objects = Reflect.get(globalThis, 'liveObjects') as object[];
  Reflect.deleteProperty(globalThis, 'liveObjects');
  return objects;
}

/** esbuild writes `_A` for a class A that names itself. */
const sourceName = (name: string): string => name.replace(/^_/, '');

/** The classes among the objects. */
function classesIn(objects: readonly object[], classes: readonly ProgramClass[]): Class[] {
  const names = new Set(classes.map(({ name }) => name));
  const texts = new Set(classes.map(({ text }) => text));
  const isOne = (it: object): boolean => {
    if (typeof it !== 'function') return false;
    // by the name first: the texts of all functions take seconds. Some functions of Node have no name
    const name: unknown = it.name;
    return typeof name === 'string' && names.has(sourceName(name)) && texts.has(Function.prototype.toString.call(it));
  };
  return objects.filter(isOne) as Class[];
}

function count(object: unknown): void {
  if (typeof object !== 'object' || object === null) return;
  const ofClass = counts.get(Object.getPrototypeOf(object) as object);
  // the prototype of a subclass is no instance
  if (ofClass === undefined || counts.has(object)) return;
  if (hasFastProperties(object)) ofClass.fast++;
  else ofClass.dictionaries++;
}

function watchedMethod(method: () => unknown): () => unknown {
  return function (this: unknown, ...args: readonly []) {
    count(this);
    return Reflect.apply(method, this, args);
  };
}

function watchMethods(prototype: Prototype): void {
  for (const key of Reflect.ownKeys(prototype)) {
    const property = Object.getOwnPropertyDescriptor(prototype, key)!;
    if (key === 'constructor') continue;
    if (typeof property.value === 'function') property.value = watchedMethod(property.value as () => unknown);
    if (property.get !== undefined) property.get = watchedMethod(property.get);
    Object.defineProperty(prototype, key, property);
  }
}

function watch(classes: readonly ProgramClass[]): void {
  const objects = liveObjects();
  const found = classesIn(objects, classes);
  for (const { name, prototype } of found) counts.set(prototype, { name: sourceName(name), fast: 0, dictionaries: 0 });
  for (const object of objects) count(object);
  for (const { prototype } of found) watchMethods(prototype);
}

/** V8 makes a dictionary of an object whose property is deleted, unless it is the newest. */
function plant(planted: ProgramClass): void {
  const objects = liveObjects();
  const { prototype } = classesIn(objects, [planted])[0]!;
  const object = objects.find((it) => Object.getPrototypeOf(it) === prototype) as Record<string, unknown>;
  const name = Object.keys(object)[0]!;
  const value = object[name];
  delete object[name];
  object[name] = value;
}

// `--import` loads this file into the program's threads too
if (isMainThread) {
  process.on('message', (message: Message) => {
    if (message.kind === 'workload') return;
    if (message.kind === 'plant') plant(message.planted);
    if (message.kind === 'watch') watch(message.classes);
    process.send?.([...counts.values()]);
  });
}
