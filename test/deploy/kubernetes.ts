/** The manifests of deploy/kubernetes. */
import assert from 'node:assert/strict';
import type { StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { Container, PodSpec, Service } from 'kubernetes-types/core/v1.js';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import { parse, parseAllDocuments } from 'yaml';
import { read } from './files.ts';
import type { Manifest } from './kubernetes-mistakes.ts';

export const FOLDER = 'deploy/kubernetes';

/** In which a user has put the manifests. */
export const NAMESPACE = 'somewhere';

export interface Kustomization {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly images: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
}

export const kustomization = (): Kustomization => parse(read(`${FOLDER}/kustomization.yaml`)) as Kustomization;

/** Those of a text with several. Fails for a text that is no YAML. */
export function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual([...document.errors, ...document.warnings], []);
    return document.toJS() as Manifest;
  });
}

interface Kinds {
  readonly StatefulSet: StatefulSet;
  readonly Service: Service;
  readonly PodDisruptionBudget: PodDisruptionBudget;
  readonly NetworkPolicy: NetworkPolicy;
}

export class Manifests {
  readonly all: readonly Manifest[] = kustomization().resources.flatMap((path) =>
    manifestsOf(read(`${FOLDER}/${path}`)),
  );

  get<K extends keyof Kinds>(kind: K, name: string): Kinds[K] {
    const found = this.all.find((one) => one.kind === kind && one.metadata.name === name);
    return (found ?? assert.fail(`no ${kind} ${name}`)) as Manifest & Kinds[K];
  }

  pod(name: string): PodSpec {
    return this.get('StatefulSet', name).spec?.template.spec ?? assert.fail(`no pod in ${name}`);
  }

  container(name: string): Container {
    return this.pod(name).containers[0] ?? assert.fail(`no container in ${name}`);
  }

  /** The words that the process of the first pod gets: the first is the command. */
  words(name: string): string[] {
    const { args = [] } = this.container(name);
    return args.map((word) => word.replace('$(POD_NAME)', `${name}-0`).replace('$(POD_NAMESPACE)', NAMESPACE));
  }
}
