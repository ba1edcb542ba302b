// Sets the priority of a pod from its PriorityClass. At most one class can be the default.
import { forbidden } from '#apimachinery/status/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'

const priorityClasses = 'priorityclasses.scheduling.k8s.io'

interface PriorityClass extends KubeObject {
  value?: number
  preemptionPolicy?: string
  globalDefault?: boolean
}
interface Spec {
  priorityClassName?: string
  priority?: number
  preemptionPolicy?: string
}

/**
 * Sets priority and preemptionPolicy of new pods. Throws 403 for a missing class, for values that contradict the class,
 * and for a second default class.
 */
export const podPriority: AdmissionPlugin = {
  name: 'Priority',
  mutate({ operation, definition, subresource, context, name }, object, old) {
    const { group, resource } = definition.info
    if (operation === 'DELETE' || subresource !== '' || group !== '' || resource !== 'pods') return
    // Pods that the syncer copies from members keep the priority that they have in the member.
    if (context.user.realm.kind === 'installation') return
    const spec = object['spec'] as Spec
    if (old !== undefined) {
      const { priority, preemptionPolicy } = old['spec'] as Spec
      if (priority !== undefined) spec.priority ??= priority
      if (preemptionPolicy !== undefined) spec.preemptionPolicy ??= preemptionPolicy
      return
    }
    const found = classOf(spec, context.objects)
    if (found === undefined && spec.priorityClassName)
      throw forbidden(definition.info, name, `no PriorityClass with name ${spec.priorityClassName} was found`)
    const { value = 0, preemptionPolicy = 'PreemptLowerPriority' } = found ?? {}
    if (spec.priority !== undefined && spec.priority !== value)
      throw forbidden(
        definition.info,
        name,
        `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
      )
    if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== preemptionPolicy)
      throw forbidden(
        definition.info,
        name,
        `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${preemptionPolicy} from the given PriorityClass name`,
      )
    if (found !== undefined && found.metadata.name !== undefined) spec.priorityClassName = found.metadata.name
    spec.priority = value
    spec.preemptionPolicy = preemptionPolicy
  },
  validate({ operation, definition, subresource, context, name }, object) {
    if (definition.storageKey !== priorityClasses || subresource !== '' || operation === 'DELETE') return
    if (object?.['globalDefault'] !== true) return
    const present = defaultClass(context.objects)?.metadata.name
    if (present === undefined || (operation === 'UPDATE' && present === name)) return
    throw forbidden(
      definition.info,
      name,
      `PriorityClass ${present} is already marked as default. Only one default can exist`,
    )
  },
}

function classOf({ priorityClassName }: Spec, objects: ClusterObjects): PriorityClass | undefined {
  if (priorityClassName) {
    const entry = objects.get(priorityClasses, '', priorityClassName)
    return entry === undefined ? undefined : decodeObject(entry.bytes)
  }
  return defaultClass(objects)
}

function defaultClass(objects: ClusterObjects): PriorityClass | undefined {
  return objects
    .list({ resource: priorityClasses })
    .map((entry) => decodeObject(entry.bytes) as PriorityClass)
    .filter(({ globalDefault }) => globalDefault === true)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0]
}
