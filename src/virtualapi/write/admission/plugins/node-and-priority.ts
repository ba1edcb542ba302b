// Refuses pods of tenants that name a node or a system priority class. A pod that names its node evades the scheduler
// of the member and all its checks; a pod with a system priority class evicts the member's own pods. Admins of the
// installation allow both with the pod security level "privileged".
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { defaultPodSecurity, isSystemPriorityClass } from '#crds/index.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import type { MayRunPods } from './pod-security.ts'
import { podIn, podSpecPath } from './pod-template.ts'

/**
 * Refuses with 403 pods and templates with a nodeName or a system priority class, unless the logical cluster is
 * privileged. If no member could run them, warns instead. A stored pod may keep these fields, because a bound pod has a
 * nodeName.
 */
export const nodeAndPriority = (mayRunPods: MayRunPods): AdmissionPlugin => ({
  name: 'NodeAndPriority',
  validate({ operation, definition, subresource, context, name }, object, old) {
    const { storageKey, info } = definition
    if (object === undefined || operation === 'DELETE' || subresource !== '') return
    if (context.user.realm.kind === 'installation') return
    if ((context.cluster.podSecurity ?? defaultPodSecurity) === 'privileged') return
    const before = old === undefined ? [] : refusedFields(storageKey, old)
    const refused = refusedFields(storageKey, object).filter((field) => !before.includes(field))
    if (refused.length === 0) return
    if (mayRunPods(context.cluster))
      throw forbidden(info, name || (object.metadata.generateName ?? ''), refused.join(', '))
    context.warnings.push(...refused.map((text) => `no member will run this: ${text}`))
  },
})

/** A sentence for each field of the pod or template that is refused. */
function refusedFields(storageKey: string, object: KubeObject): string[] {
  const spec = podIn(storageKey, object)?.spec as { nodeName?: unknown; priorityClassName?: unknown } | undefined
  if (spec === undefined) return []
  const { nodeName, priorityClassName } = spec
  const path = podSpecPath(storageKey)
  return [
    ...(typeof nodeName === 'string' && nodeName !== ''
      ? [`${path}.nodeName "${nodeName}" is not allowed: the scheduler of a member cluster chooses the node`]
      : []),
    ...(isSystemPriorityClass(priorityClassName)
      ? [`${path}.priorityClassName "${priorityClassName}" is not allowed: it is for the member clusters' own pods`]
      : []),
  ]
}
