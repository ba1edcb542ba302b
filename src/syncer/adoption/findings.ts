// What an adoption has to know besides its objects: APIs whose objects kcp does not see, and names that lead into the
// namespace or out of it, which mean something else, or nothing, once the workloads run in another member.
import { isJsonObject, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { parseDownstreamNamespace, templateOf, workloadKindOfObject, type AdoptionFinding } from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { isOfKubernetes, makerOf, type LiveNamespace } from './live-namespace.ts'
import type { AdoptionRequest } from './request.ts'

/** How many findings a plan has. */
const maxFindings = 100
/** How many objects of each kind are read in the other namespaces of the member. */
const maxRead = 2000
/** How many characters of one text of a container are searched for names. */
const maxText = 8192

/** Rejects with StatusError if the member does not answer. */
export async function findingsOf(request: AdoptionRequest, live: LiveNamespace): Promise<AdoptionFinding[]> {
  const found = [
    ...(await unseenApis(request)),
    ...(await intoNamespace(request, live)),
    ...outOfNamespace(request, live),
  ]
  return found
    .slice(0, maxFindings)
    .map(({ about, message }) => ({ about: about.slice(0, 512), message: message.slice(0, 1000) }))
}

interface DiscoveredGroup {
  readonly metadata?: { readonly name?: string }
  readonly versions?: readonly {
    readonly resources?: readonly {
      readonly resource?: string
      readonly scope?: string
      readonly verbs?: readonly string[]
    }[]
  }[]
}

/** The APIs of the member with objects in namespaces that it does not export: kcp has no right to see the objects. */
async function unseenApis({ downstream, member, signal }: AdoptionRequest): Promise<AdoptionFinding[]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const { items = [] } = ((await downstream.raw('/apis', { accept, signal })) ?? {}) as { items?: DiscoveredGroup[] }
  const exported = new Set(member.exportedAPIs.map(({ group, resource }) => `${resource}.${group}`))
  const unseen = new Set<string>()
  for (const { metadata, versions = [] } of items) {
    const group = metadata?.name ?? ''
    if (isOfKubernetes(`${group}/v1`)) continue
    for (const { resource = '', scope, verbs = [] } of versions.flatMap(({ resources = [] }) => resources))
      if (scope === 'Namespaced' && verbs.includes('create') && !exported.has(`${resource}.${group}`))
        unseen.add(`${resource}.${group}`)
  }
  if (unseen.size === 0) return []
  const names = [...unseen].sort()
  const more = names.length > 8 ? ` and ${names.length - 8} more` : ''
  return [
    {
      about: `${names.slice(0, 8).join(', ')}${more}`,
      message: `kcp does not see objects of these APIs, so they are not in this plan and stay in the member cluster. To adopt them, let the member export their APIs: kcp member join ${member.name} --export ${names[0] ?? ''}`,
    },
  ]
}

const others = ['services', 'networkpolicies', 'deployments', 'statefulsets', 'daemonsets', 'cronjobs'] as const

/** Objects of other namespaces of the member that name the namespace. */
async function intoNamespace(request: AdoptionRequest, live: LiveNamespace): Promise<AdoptionFinding[]> {
  const { memberNamespace } = request
  const services = live.objects.filter(({ kind }) => kind.resource === 'services')
  const wanted: Wanted = {
    memberNamespace,
    labels: await labelsOf(request),
    named: namesIn(memberNamespace, new Set(services.map(({ live: one }) => one.metadata.name))),
  }
  const found: AdoptionFinding[] = []
  for (const resource of others) {
    const { items, isWhole } = await read(request, gvrs[resource])
    if (!isWhole)
      found.push({
        about: resource,
        message: `the member cluster has more than ${maxRead}: not all were searched for references`,
      })
    for (const object of items) {
      const { namespace = '' } = object.metadata
      if (namespace === memberNamespace || parseDownstreamNamespace(namespace) !== undefined) continue
      const message = referenceInto(object, wanted)
      if (message !== undefined) found.push({ about: textOf(object), message })
    }
  }
  return found
}

async function labelsOf({ downstream, memberNamespace, signal }: AdoptionRequest): Promise<Record<string, string>> {
  const found = await downstream.tryGet<KubeObject>(gvrs.namespaces, { name: memberNamespace }, { signal })
  return { ...found?.metadata.labels, 'kubernetes.io/metadata.name': memberNamespace }
}

/** The first objects of a kind in the whole member; none if the member does not show them. */
async function read(
  { downstream, signal }: AdoptionRequest,
  gvr: GroupVersionResource,
): Promise<{ readonly items: readonly KubeObject[]; readonly isWhole: boolean }> {
  try {
    const { items, metadata } = await downstream.list<KubeObject>(gvr, { limit: maxRead, signal })
    return { items, isWhole: !metadata.continue }
  } catch (error) {
    if (!isStatusError(error, 'Forbidden')) throw error
    return { items: [], isWhole: true }
  }
}

function textOf({ kind, metadata: { namespace = '', name = '' } }: KubeObject): string {
  return `${kind} ${namespace}/${name}`
}

interface Wanted {
  readonly memberNamespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly named: (text: string) => string | undefined
}

/** What the object of another namespace refers to in the namespace, in words; undefined: nothing. */
function referenceInto(object: KubeObject, { memberNamespace, labels, named }: Wanted): string | undefined {
  const leads = (name: string): string =>
    `it leads to "${name}", which is there until the workloads of "${memberNamespace}" move to another member`
  if (object.kind === 'Service') {
    const { externalName = '' } = (object['spec'] ?? {}) as { externalName?: string }
    const name = named(externalName)
    return name === undefined ? undefined : leads(name)
  }
  if (object.kind === 'NetworkPolicy')
    return namespaceSelectorsOf(object).some(
      (selector) => isNonEmpty(selector) && selectorFromObject(selector).matches(labels),
    )
      ? `it selects namespace "${memberNamespace}" by its labels: it says nothing of pods in another member`
      : undefined
  if (makerOf(object) !== undefined) return undefined
  const terms = affinityTermsOf(object)
  if (terms.some(({ namespaces = [] }) => namespaces.includes(memberNamespace)))
    return `its pod affinity names namespace "${memberNamespace}", whose pods may move to another member`
  for (const text of textsOf(object)) {
    const name = named(text)
    if (name !== undefined) return leads(name)
  }
  return undefined
}

/** What workloads of the namespace refer to outside of it. */
function outOfNamespace({ memberNamespace, namespace }: AdoptionRequest, live: LiveNamespace): AdoptionFinding[] {
  const found: AdoptionFinding[] = []
  for (const { live: object } of live.objects) {
    if (workloadKindOfObject(object) === undefined || makerOf(object) !== undefined) continue
    const about = `${object.kind}/${object.metadata.name ?? ''}`
    const elsewhere = new Set<string>()
    for (const text of textsOf(object))
      for (const [, host = '', other = ''] of text.matchAll(anyService))
        if (other !== memberNamespace) elsewhere.add(`${host}.${other}`)
        else if (namespace !== memberNamespace) elsewhere.add(`${host}.${other}`)
    const names = [...elsewhere].slice(0, 5).map((name) => `"${name}"`)
    if (names.length > 0)
      found.push({
        about,
        message: `it names ${names.join(', ')} of the member cluster, which its pods do not find after its template was changed or it has moved`,
      })
    const namespaces = affinityTermsOf(object).flatMap((term) => term.namespaces ?? [])
    if (namespaces.some((other) => other !== memberNamespace))
      found.push({
        about,
        message: 'its pod affinity names other namespaces: in another member they are those of the logical cluster',
      })
  }
  return found
}

const anyService =
  /(?<![a-z0-9.-])([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\.([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\.svc(?![a-z0-9-])/g

/** Finds the name of a Service of the namespace in a text: `web.shop.svc`, or `web.shop` of a Service that is there. */
function namesIn(namespace: string, services: ReadonlySet<string | undefined>): Wanted['named'] {
  const pattern = new RegExp(
    `(?<![a-z0-9.-])([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\\.${namespace}(\\.svc(?![a-z0-9-])|(?![a-z0-9.-]))`,
    'g',
  )
  return (text) => {
    for (const [, name = '', suffix] of text.slice(0, maxText).matchAll(pattern))
      if (suffix !== '' || services.has(name)) return `${name}.${namespace}`
    return undefined
  }
}

/** The texts of containers in which names of Services are written. */
function* textsOf(object: KubeObject): Generator<string> {
  const { spec } = (templateOf(object) ?? {}) as { spec?: unknown }
  if (!isJsonObject(spec)) return
  for (const field of ['containers', 'initContainers']) {
    const containers = spec[field]
    for (const container of Array.isArray(containers) ? containers.filter(isJsonObject) : []) {
      const { env, args, command } = container
      for (const list of [args, command]) if (Array.isArray(list)) yield* list.filter(isText)
      for (const one of Array.isArray(env) ? env.filter(isJsonObject) : []) if (isText(one['value'])) yield one['value']
    }
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxText
}

interface AffinityTerm {
  readonly namespaces?: readonly string[]
}

function affinityTermsOf(object: KubeObject): AffinityTerm[] {
  const { spec } = (templateOf(object) ?? {}) as { spec?: { affinity?: Record<string, Record<string, unknown>> } }
  return ['podAffinity', 'podAntiAffinity'].flatMap((kind) => {
    const found = spec?.affinity?.[kind] ?? {}
    const required = found['requiredDuringSchedulingIgnoredDuringExecution']
    const preferred = found['preferredDuringSchedulingIgnoredDuringExecution']
    return [
      ...(Array.isArray(required) ? (required as AffinityTerm[]) : []),
      ...(Array.isArray(preferred) ? (preferred as { podAffinityTerm?: AffinityTerm }[]) : []).map(
        ({ podAffinityTerm = {} }) => podAffinityTerm,
      ),
    ]
  })
}

/** The namespace selectors of all peers of a NetworkPolicy. */
export function namespaceSelectorsOf(policy: KubeObject): LabelSelectorSource[] {
  const { ingress = [], egress = [] } = (policy['spec'] ?? {}) as {
    ingress?: readonly { readonly from?: readonly { readonly namespaceSelector?: LabelSelectorSource }[] }[]
    egress?: readonly { readonly to?: readonly { readonly namespaceSelector?: LabelSelectorSource }[] }[]
  }
  const peers = [...ingress.map(({ from = [] }) => from), ...egress.map(({ to = [] }) => to)].flat()
  return peers.flatMap(({ namespaceSelector }) => (namespaceSelector === undefined ? [] : [namespaceSelector]))
}

/** A selector without requirements selects all namespaces, also those of the logical cluster. */
function isNonEmpty(selector: LabelSelectorSource): boolean {
  return Object.values(selector).some((part) => isJsonObject(part) || Array.isArray(part))
}
