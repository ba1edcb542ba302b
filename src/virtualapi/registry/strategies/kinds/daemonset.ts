// DaemonSets count the generations of their template in an annotation.
import { isDeepStrictEqual } from 'node:util'
import type { V1DaemonSetSpec } from '@kubernetes/client-node'
import type { KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { daemonSetChecks } from './workloads.ts'

interface DaemonSet extends KubeObject {
  spec: Data<V1DaemonSetSpec>
}

const generationAnnotation = 'deprecated.daemonset.template.generation'

export const daemonSetRules: KindRules = {
  ...daemonSetChecks,
  prepareForCreate(object) {
    setGeneration(object, Math.max(generationOf(object), 1))
  },
  prepareForUpdate(object, old, _context, subresource) {
    if (subresource !== '') return
    const changed = !isDeepStrictEqual((object as DaemonSet).spec.template, (old as DaemonSet).spec.template)
    setGeneration(object, generationOf(old) + (changed ? 1 : 0))
  },
}

function generationOf({ metadata }: KubeObject): number {
  return Number(metadata.annotations?.[generationAnnotation] ?? 0) || 0
}

function setGeneration({ metadata }: KubeObject, generation: number): void {
  metadata.annotations = { ...metadata.annotations, [generationAnnotation]: String(generation) }
}
