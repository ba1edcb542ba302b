// Applies the LimitRanges of a namespace: defaults for containers, and bounds for containers, pods and claims.
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { quantityText, totalOfContainers } from '#apimachinery/quantity/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { chargeAdded, decodeConfiguration } from '#virtualapi/write/admission/stored-configuration.ts'
import { violations, type Amounts, type LimitRangeItem, type Measured } from './limit-range-bounds.ts'

interface Limits {
  readonly name: string
  readonly items: readonly LimitRangeItem[]
}

interface Container {
  name?: string
  restartPolicy?: string
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
}
interface PodSpec {
  containers: Container[]
  initContainers?: Container[]
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
}

const annotation = 'kubernetes.io/limit-ranger'

/** Sets default requests and limits of new pods, and refuses with 403 pods and claims that are out of bounds. */
export const limitRanger: AdmissionPlugin = {
  name: 'LimitRanger',
  mutate(request, object) {
    if (!isNewPod(request)) return
    const limits = limitsOf(request)
    if (limits.length === 0) return
    const spec = object['spec'] as Partial<PodSpec> | undefined
    // Validation, which runs later, refuses a pod without containers.
    const { containers } = spec ?? {}
    if (spec === undefined || !Array.isArray(containers)) return
    chargeAdded(request, addedBy(limits) * (containers.length + (spec.initContainers?.length ?? 0)), () =>
      allOf(request),
    )
    for (const { items } of limits) fillIn({ ...spec, containers }, object, items)
  },
  validate(request, object, old) {
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return
    const resizes = isPod(request) && request.operation === 'UPDATE' && request.subresource === 'resize'
    const measured = isNewPod(request) || resizes ? podMeasures : isClaim(request) ? claimMeasures : undefined
    if (measured === undefined || (isClaim(request) && old !== undefined && sameClaim(object, old))) return
    for (const { items } of limitsOf(request)) {
      const problems = violations(items, measured(object))
      if (problems.length > 0) {
        const text = problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]`
        throw forbidden(request.definition.info, request.name || (object.metadata.generateName ?? ''), text)
      }
    }
  },
}

function isPod({ definition: { info }, context }: AdmissionRequest): boolean {
  // Pods that the syncer copies from members were admitted in the member, so they do not count.
  return info.group === '' && info.resource === 'pods' && context.user.realm.kind !== 'installation'
}

function isNewPod(request: AdmissionRequest): boolean {
  return request.operation === 'CREATE' && request.subresource === '' && isPod(request)
}

function isClaim({ definition: { info }, subresource, operation }: AdmissionRequest): boolean {
  return info.group === '' && info.resource === 'persistentvolumeclaims' && subresource === '' && operation !== 'DELETE'
}

function sameClaim(object: KubeObject, old: KubeObject): boolean {
  return JSON.stringify(object['spec']) === JSON.stringify(old['spec'])
}

const allOf = ({ namespace }: AdmissionRequest): string => `the LimitRanges of namespace ${JSON.stringify(namespace)}`

function limitsOf(request: AdmissionRequest): Limits[] {
  const { context, namespace } = request
  const entries = context.objects.list({ resource: 'limitranges', namespace })
  if (entries.length === 0) return []
  return decodeConfiguration(request, entries, () => allOf(request)).map(({ metadata, ...rest }) => {
    const { limits } = (rest['spec'] ?? {}) as { limits?: LimitRangeItem[] | null }
    return { name: metadata.name ?? '', items: limits ?? [] }
  })
}

/** The most values that the LimitRanges add to a container. */
function addedBy(limits: readonly Limits[]): number {
  const sizes = limits.flatMap(({ items }) => items.filter(({ type }) => type === 'Container').map(sizeOfDefaults))
  return sizes.reduce((sum, size) => sum + size, 0)
}

const sizeOfDefaults = ({ default: limits = {}, defaultRequest = {} }: LimitRangeItem): number =>
  Object.keys(limits).length + Object.keys(defaultRequest).length

function fillIn(spec: PodSpec, object: KubeObject, items: readonly LimitRangeItem[]): void {
  const requests: Record<string, string> = {}
  const limits: Record<string, string> = {}
  for (const item of items.filter(({ type }) => type === 'Container')) {
    Object.assign(requests, item.defaultRequest)
    Object.assign(limits, item.default)
  }
  const messages = [
    ...spec.containers.flatMap((container) => fillInContainer(container, 'container', requests, limits)),
    ...(spec.initContainers ?? []).flatMap((container) =>
      fillInContainer(container, 'init container', requests, limits),
    ),
  ]
  if (messages.length === 0) return
  object.metadata.annotations = {
    ...object.metadata.annotations,
    [annotation]: `LimitRanger plugin set: ${messages.join('; ')}`,
  }
}

/** Sets the defaults of a container. Returns a text for the annotation about each kind of default set. */
function fillInContainer(
  container: Container,
  what: string,
  requests: Readonly<Record<string, string>>,
  limits: Readonly<Record<string, string>>,
): string[] {
  const messages: string[] = []
  const resources = (container.resources ??= {})
  for (const [member, defaults] of [
    ['requests', requests],
    ['limits', limits],
  ] as const) {
    const given = resources[member] ?? {}
    const missing = Object.keys(defaults).filter((name) => given[name] === undefined)
    if (missing.length === 0) continue
    resources[member] = { ...Object.fromEntries(missing.map((name) => [name, defaults[name] ?? '0'])), ...given }
    messages.push(`${missing.sort().join(', ')} ${member.slice(0, -1)} for ${what} ${container.name ?? ''}`)
  }
  return messages
}

/** The amounts of a pod that a LimitRange bounds: of every container, and of the whole pod. */
function podMeasures(object: KubeObject): Measured[] {
  const spec = object['spec'] as PodSpec
  const all = [...spec.containers, ...(spec.initContainers ?? [])]
  return [
    ...all.map(({ resources }) => ({
      type: 'Container',
      requests: resources?.requests ?? {},
      limits: resources?.limits ?? {},
    })),
    { type: 'Pod', requests: podTotal(spec, 'requests'), limits: podTotal(spec, 'limits') },
  ]
}

/** The total over the containers; pod-level cpu and memory take precedence. */
function podTotal(spec: PodSpec, which: 'requests' | 'limits'): Amounts {
  const { cpu, memory } = spec.resources?.[which] ?? {}
  const summed = [...totalOfContainers(spec as unknown as JsonObject, which)]
  return {
    ...Object.fromEntries(summed.map(([name, amount]) => [name, quantityText(amount)])),
    ...(cpu === undefined ? {} : { cpu }),
    ...(memory === undefined ? {} : { memory }),
  }
}

function claimMeasures(object: KubeObject): Measured[] {
  const { resources } = object['spec'] as { resources?: { requests?: Amounts } }
  return [{ type: 'PersistentVolumeClaim', requests: resources?.requests ?? {} }]
}
