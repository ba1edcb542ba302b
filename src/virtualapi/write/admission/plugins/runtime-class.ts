// Applies a pod's RuntimeClass: the overhead of the pod beyond its containers, and the node selector and tolerations.
import { isDeepStrictEqual } from 'node:util'
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { decodeConfiguration } from '#virtualapi/write/admission/stored-configuration.ts'

interface Toleration {
  key?: string
  operator?: string
  value?: string
  effect?: string
  tolerationSeconds?: number
}
interface RuntimeClass {
  overhead?: { podFixed?: Record<string, string> }
  scheduling?: { nodeSelector?: Record<string, string>; tolerations?: Toleration[] }
}
interface Spec {
  runtimeClassName?: string
  overhead?: Record<string, string>
  nodeSelector?: Record<string, string>
  tolerations?: Toleration[]
}

/**
 * Sets overhead, nodeSelector and tolerations of new pods. Throws 403 for a missing class, and for values of the pod
 * that contradict it.
 */
export const runtimeClass: AdmissionPlugin = {
  name: 'RuntimeClass',
  mutate(request, object) {
    if (!isNewPod(request)) return
    const spec = object['spec'] as Spec
    const found = classOf(spec, request)
    setOverhead(spec, found, request)
    if (found?.scheduling !== undefined) setScheduling(spec, found.scheduling, request)
  },
  validate(request, object) {
    if (object === undefined || !isNewPod(request)) return
    const spec = object['spec'] as Spec
    if (hasOverhead(spec) && classOf(spec, request)?.overhead === undefined)
      throw refused(request, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
  },
}

function isNewPod({ operation, definition: { info }, subresource, context }: AdmissionRequest): boolean {
  if (operation !== 'CREATE' || subresource !== '' || info.group !== '' || info.resource !== 'pods') return false
  // The RuntimeClass of a pod that the syncer copies from a member was applied in the member.
  return context.user.realm.kind !== 'installation'
}

const hasOverhead = ({ overhead }: Spec): boolean => overhead !== undefined && Object.keys(overhead).length > 0

function classOf({ runtimeClassName }: Spec, request: AdmissionRequest): (KubeObject & RuntimeClass) | undefined {
  if (!runtimeClassName) return undefined
  const entry = request.context.objects.get('runtimeclasses.node.k8s.io', '', runtimeClassName)
  if (entry === undefined) throw refused(request, `pod rejected: RuntimeClass "${runtimeClassName}" not found`)
  return decodeConfiguration(request, [entry], () => `RuntimeClass ${JSON.stringify(runtimeClassName)}`)[0]
}

function setOverhead(spec: Spec, found: RuntimeClass | undefined, request: AdmissionRequest): void {
  const fixed = found?.overhead?.podFixed
  if (fixed === undefined) return
  if (hasOverhead(spec) && !isDeepStrictEqual({ ...spec.overhead }, { ...fixed }))
    throw refused(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  spec.overhead = { ...fixed }
}

function setScheduling(
  spec: Spec,
  { nodeSelector = {}, tolerations = [] }: NonNullable<RuntimeClass['scheduling']>,
  request: AdmissionRequest,
): void {
  for (const [key, value] of Object.entries(nodeSelector)) {
    const own = spec.nodeSelector?.[key]
    if (own !== undefined && own !== value)
      throw refused(
        request,
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      )
  }
  if (Object.keys(nodeSelector).length > 0) spec.nodeSelector = { ...spec.nodeSelector, ...nodeSelector }
  const own = spec.tolerations ?? []
  // Tolerations are compared as texts, because tenants write both lists, which may have thousands of items.
  const present = new Set(own.map(canonicalJson))
  const missing = tolerations.filter((wanted) => !present.has(canonicalJson(wanted)))
  if (missing.length > 0) spec.tolerations = [...own, ...missing]
}

function refused({ definition, name }: AdmissionRequest, text: string): Error {
  return forbidden(definition.info, name, text)
}
