// The plan of an adoption: what becomes of each object of the namespace in the member, with the reason where an object
// is not adopted. Nothing is written.
import { selectorFromObject } from '#apimachinery/selector/index.ts'
import { isJsonObject, type KubeObject, type OwnerReference } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import {
  adoptedObject,
  templateOf,
  tryLocator,
  workloadKindOfObject,
  type AdoptionAction,
  type PlannedObject,
} from '#crds/index.ts'
import {
  accountReferences,
  asOrdinalClaim,
  claimReferences,
  ingressReferences,
  referencesOf,
  scaleTargetOf,
} from '#syncer/context/references.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { relatedName } from '#syncer/rules/related.ts'
import { managedByLabel, serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import type { AdoptableKind, AdoptableResource } from './adoptable-kinds.ts'
import { copyOf, differencesOf, differingPaths, withContent } from './copy-of.ts'
import { fieldOwners } from './field-owners.ts'
import { namespaceSelectorsOf } from './findings.ts'
import { isOfKubernetes, makerOf, readNamespace, rootOf, type LiveNamespace } from './live-namespace.ts'
import { otherApplier } from './other-appliers.ts'
import type { AdoptionRequest } from './request.ts'
import { upstreamObject } from './upstream-object.ts'

/** One object of the namespace, and what becomes of it. */
export interface PlannedAdoption {
  readonly kind: AdoptableKind
  readonly live: KubeObject
  readonly planned: PlannedObject
}

export interface AdoptionPlan {
  readonly adoptions: readonly PlannedAdoption[]
  /** All objects, also those of kinds that are never adopted. */
  readonly objects: readonly PlannedObject[]
  readonly live: LiveNamespace
}

/** In a status, objects that are refused come first. */
const order: readonly AdoptionAction[] = ['Refuse', 'Adopt', 'Carry', 'Keep']

type Verdict = Pick<PlannedObject, 'action'> & { readonly message?: string }

const refuse = (message: string): Verdict => ({ action: 'Refuse', message })
const keep = (message: string): Verdict => ({ action: 'Keep', message })

/**
 * Plans the adoption. `isConsented`: kcp may write in the namespace, so dry runs tell whether a write would change
 * anything. Rejects with StatusError if one of both sides does not answer.
 */
export async function planAdoption(
  request: AdoptionRequest,
  { isConsented }: { readonly isConsented: boolean },
): Promise<AdoptionPlan> {
  const live = await readNamespace(request)
  const facts = factsOf(live)
  const adoptions: PlannedAdoption[] = []
  for (const { kind, live: object } of live.objects) {
    const verdict = judge(request, { kind, object }, facts)
    if (verdict === undefined) continue
    const planned = await planObject(request, { kind, object, verdict, isConsented })
    adoptions.push({ kind, live: object, planned })
  }
  const others = [
    ...live.staying.map(({ live: object, why }) => plannedOf(object, keep(why))),
    ...live.pods
      .filter((pod) => isAlone(pod, live) && pod.metadata.deletionTimestamp === undefined)
      .map((pod) =>
        plannedOf(
          pod,
          keep(
            'a pod without a controller runs on until it ends: no cluster would make another, and its spec, as the member cluster has completed it, is not one that a tenant may write',
          ),
        ),
      ),
  ]
  return { adoptions, live, objects: [...adoptions.map(({ planned }) => planned), ...others] }
}

function isAlone(pod: KubeObject, { byUid }: LiveNamespace): boolean {
  const found = rootOf(pod, byUid)
  return 'root' in found && found.root === pod
}

function plannedOf({ kind, metadata: { name = '' } }: KubeObject, { action, message }: Verdict): PlannedObject {
  return { kind, name, action, ...(message !== undefined && { message: message.slice(0, 1000) }) }
}

interface Facts {
  readonly live: LiveNamespace
  /** `RESOURCE/NAME` of everything that workloads, their ServiceAccounts and Ingresses refer to. */
  readonly references: ReadonlySet<string>
  /** By `RESOURCE/NAME`: the operator's object that uses a claim of a claim template, or shows a Secret or ConfigMap. */
  readonly ofOperators: ReadonlyMap<string, string>
}

function factsOf(live: LiveNamespace): Facts {
  const references = new Set<string>()
  const add = (found: readonly { readonly resource: string; readonly name: string }[]): void => {
    for (const { resource, name } of found) references.add(`${resource}/${name}`)
  }
  for (const { live: object } of live.objects) {
    if (workloadKindOfObject(object) !== undefined && !isMade(object, live)) {
      const { spec } = (templateOf(object) ?? {}) as { spec?: PodSpec }
      if (spec !== undefined) add(referencesOf(spec))
      add(claimReferences(object))
    }
    if (object.kind === 'Ingress') add(ingressReferences(object))
  }
  for (const { live: object } of live.objects)
    if (object.kind === 'ServiceAccount' && references.has(`serviceaccounts/${object.metadata.name ?? ''}`))
      add(accountReferences(object))
  return { live, references, ofOperators: ofOperators(live) }
}

function ofOperators(live: LiveNamespace): Map<string, string> {
  const found = new Map<string, string>()
  for (const { kind, live: object } of live.objects) {
    const maker = operatorsObject(object, live)
    if (maker !== undefined)
      for (const { resource, name } of claimReferences(object)) found.set(`${resource}/${name}`, maker)
    if (kind.obstacle !== undefined) continue
    for (const reference of kind.related ?? []) {
      const name = relatedName(reference, { object, live: object })
      if (name !== undefined) found.set(`${reference.resource}/${name}`, textOf(object))
    }
  }
  return found
}

/** The words for the custom resource of which an operator in the member has made the object; undefined: there is none. */
function operatorsObject(object: KubeObject, { byUid }: LiveNamespace): string | undefined {
  const found = rootOf(object, byUid)
  if ('missing' in found) return isOfKubernetes(found.missing.apiVersion) ? undefined : textOfOwner(found.missing)
  return found.root === object || isOfKubernetes(found.root.apiVersion) ? undefined : textOf(found.root)
}

function textOf({ kind, metadata: { name = '' } }: KubeObject): string {
  return `${kind} "${name}"`
}

function textOfOwner({ kind, name }: OwnerReference): string {
  return `${kind} "${name}"`
}

/** Whether a controller makes and changes the object. */
function isMade(object: KubeObject, { byUid }: LiveNamespace): boolean {
  const found = rootOf(object, byUid)
  return 'missing' in found || found.root !== object
}

interface Judged {
  readonly kind: AdoptableKind
  readonly object: KubeObject
}

/** What becomes of the object; undefined for an object that a controller makes of an adopted one. */
function judge(request: AdoptionRequest, { kind, object }: Judged, facts: Facts): Verdict | undefined {
  const { resource, obstacle } = kind
  const { name = '', deletionTimestamp } = object.metadata
  const found = rootOf(object, facts.live.byUid)
  if ('missing' in found) return keep(withoutMaker(request, found.missing))
  if (found.root !== object && !isOfKubernetes(found.root.apiVersion)) {
    // What the operator's own objects make is not listed.
    const isDirect = makerOf(object)?.uid === found.root.metadata.uid
    return isDirect
      ? keep(`the operator of ${textOf(found.root)} makes it and keeps it in the member cluster`)
      : undefined
  }
  if (found.root !== object && resource !== 'persistentvolumeclaims') return undefined
  if (obstacle !== undefined) return keep(obstacle)
  if (deletionTimestamp !== undefined) return refuse('it is being deleted: wait until it is gone')
  const locator = tryLocator(object)
  const isOurs = locator?.clusterId === request.clusterId && locator.namespace === request.namespace
  if (locator !== undefined && !isOurs) return refuse(`it belongs to logical cluster "${locator.cluster}" already`)
  const applier = otherApplier(object)
  if (applier !== undefined) return refuse(applier)
  const user = facts.ofOperators.get(referenceTo(resource, name))
  if (user !== undefined) return keep(`the operator of ${user} uses it in the member cluster`)
  return (resource && rules[resource]?.({ request, object, name, facts })) ?? { action: 'Adopt' }
}

/** The reference by which others refer to the object; a claim of a claim template is referred to without its ordinal. */
function referenceTo(resource: AdoptableResource | undefined, name: string): string {
  const ordinal = resource === 'persistentvolumeclaims' ? asOrdinalClaim(name)?.reference : undefined
  return ordinal ?? `${resource ?? ''}/${name}`
}

function withoutMaker({ member }: AdoptionRequest, maker: OwnerReference): string {
  const text = `${textOfOwner(maker)} makes it, which stays in the member cluster`
  if (isOfKubernetes(maker.apiVersion)) return text
  const group = maker.apiVersion.slice(0, maker.apiVersion.indexOf('/'))
  return `${text}. To adopt it, let the member export its API: kcp member join ${member.name} --export RESOURCE.${group}`
}

interface Asked {
  readonly request: AdoptionRequest
  readonly object: KubeObject
  readonly name: string
  readonly facts: Facts
}

/** By resource: what is special; undefined: it is adopted. */
const rules: Readonly<Partial<Record<AdoptableResource, (asked: Asked) => Verdict | undefined>>> = {
  serviceaccounts: ({ name, facts }) => (isReferred(facts, 'serviceaccounts', name) ? undefined : { action: 'Carry' }),
  configmaps: ({ name, facts }) => {
    if (name === 'kube-root-ca.crt') return keep('every cluster makes its own')
    return isReferred(facts, 'configmaps', name) ? undefined : { action: 'Carry' }
  },
  secrets: judgeSecret,
  persistentvolumeclaims: ({ object, name, facts }) => {
    const { phase } = (object['status'] ?? {}) as { phase?: string }
    if (phase === 'Lost') return refuse('it has lost its volume')
    const ordinal = asOrdinalClaim(name)?.reference
    const isUsed =
      isReferred(facts, 'persistentvolumeclaims', name) || (ordinal !== undefined && facts.references.has(ordinal))
    return {
      action: 'Adopt',
      message: isUsed
        ? 'its volume keeps its workload in this member cluster'
        : 'its volume stays in this member cluster',
    }
  },
  services: judgeService,
  networkpolicies: ({ object }) =>
    namespaceSelectorsOf(object).length === 0
      ? undefined
      : keep(
          'it selects namespaces of the member cluster, which a logical cluster does not know: it goes on to hold for the pods there; write one in the logical cluster before they move',
        ),
  horizontalpodautoscalers: ({ object, facts }) => {
    const target = scaleTargetOf(object)
    const isThere = facts.live.objects.some(
      ({ live }) => `${live.kind}/${live.metadata.name ?? ''}` === target && !isMade(live, facts.live),
    )
    return isThere ? undefined : keep(`it scales ${target}, which is not adopted`)
  },
}

function isReferred({ references }: Facts, resource: string, name: string): boolean {
  return references.has(`${resource}/${name}`)
}

function judgeSecret({ request, object, name, facts }: Asked): Verdict | undefined {
  const type = object['type']
  if (type === 'kubernetes.io/service-account-token') return keep('it is a token for the API of the member cluster')
  if (type === 'helm.sh/release.v1')
    return request.namespace === request.memberNamespace
      ? { action: 'Carry', message: 'a release of Helm: use helm in the logical cluster from now on' }
      : refuse(`a release of Helm knows its namespace: adopt into namespace "${request.memberNamespace}"`)
  return isReferred(facts, 'secrets', name) ? undefined : { action: 'Carry' }
}

function judgeService({ object, name, facts: { live } }: Asked): Verdict | undefined {
  const { selector = {}, type } = (object['spec'] ?? {}) as { selector?: Record<string, string>; type?: string }
  if (type === 'ExternalName') return undefined
  if (Object.keys(selector).length === 0)
    return keep(
      'it has no selector: somebody writes its endpoints, and kcp copies no addresses that are not of pods; it goes on to work in the member cluster, and pods that move do not have it',
    )
  const ofOthers = live.slices.find(
    ({ metadata: { labels = {} } }) =>
      labels[serviceNameLabel] === name && labels[managedByLabel] !== 'endpointslice-controller.k8s.io',
  )
  if (ofOthers !== undefined) return refuse(`EndpointSlice "${ofOthers.metadata.name ?? ''}" is not of its selector`)
  const matcher = selectorFromObject({ matchLabels: selector })
  const selected = live.pods.filter((pod) => matcher.matches(pod.metadata.labels ?? {}))
  const foreign = selected.find((pod) => !isOfAdopted(pod, live))
  if (foreign === undefined) return undefined
  const why = `it leads to pod "${foreign.metadata.name ?? ''}", which is not adopted`
  return selected.every((pod) => !isOfAdopted(pod, live)) ? keep(why) : refuse(why)
}

function isOfAdopted(pod: KubeObject, { byUid }: LiveNamespace): boolean {
  const found = rootOf(pod, byUid)
  return 'root' in found && found.root !== pod && workloadKindOfObject(found.root) !== undefined
}

interface Planning {
  readonly kind: AdoptableKind
  readonly object: KubeObject
  readonly verdict: Verdict
  readonly isConsented: boolean
}

async function planObject(
  request: AdoptionRequest,
  { kind, object: live, verdict, isConsented }: Planning,
): Promise<PlannedObject> {
  const isMadeUpstream = verdict.action === 'Adopt' || verdict.action === 'Carry'
  if (!isMadeUpstream) return plannedOf(live, verdict)
  const taken = await refuseTaken(request, kind, live)
  if (taken !== undefined) return plannedOf(live, taken)
  if (verdict.action === 'Carry') return plannedOf(live, verdict)
  const object = withContent(upstreamObject(live, request))
  const copy = copyOf(request, kind, { object, live })
  const problem =
    (await refusePods(request, object)) ??
    (kind.resource === undefined ? await refuseCut(request, kind, object) : undefined) ??
    (isConsented ? await refuseChange(request, kind, { copy, live }) : undefined)
  return { ...plannedOf(live, problem ?? verdict), owners: fieldOwners(live, copy) }
}

/** Every logical cluster has these. */
export function isOfEveryNamespace({ kind, metadata: { name } }: KubeObject): boolean {
  return kind === 'ServiceAccount' && name === 'default'
}

/** Refuses an object whose name is taken in the logical cluster. */
async function refuseTaken(
  { upstream, namespace, adoption, signal }: AdoptionRequest,
  { gvr }: AdoptableKind,
  live: KubeObject,
): Promise<Verdict | undefined> {
  if (isOfEveryNamespace(live)) return undefined
  const found = await upstream.tryGet<KubeObject>(gvr, { namespace, name: live.metadata.name ?? '' }, { signal })
  if (found === undefined || adoptedObject(found)?.adoption === adoption) return undefined
  return refuse('the logical cluster has an object of this kind and name in the namespace already')
}

/** Refuses a workload with pods that the logical cluster would refuse, by Pod Security and admission. */
async function refusePods({ upstream, signal }: AdoptionRequest, object: KubeObject): Promise<Verdict | undefined> {
  if (workloadKindOfObject(object) === undefined) return undefined
  const template = templateOf(object) as
    { metadata?: KubeObject['metadata']; spec?: Record<string, unknown> } | undefined
  if (!isJsonObject(template?.spec)) return undefined
  if (template.spec['nodeName'] !== undefined)
    return refuse('its template has nodeName: the scheduler of a member cluster chooses the node')
  const { serviceAccountName: _name, serviceAccount: _old, ...spec } = template.spec
  const { labels = {}, annotations = {} } = template.metadata ?? {}
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'adoption-', namespace: 'default', labels, annotations },
    spec: { ...spec, volumes: volumesOf(object, spec), restartPolicy: spec['restartPolicy'] ?? 'Always' },
  }
  try {
    await upstream.create<KubeObject>(gvrs.pods, pod, { dryRun: true, signal })
    return undefined
  } catch (error) {
    if (!isStatusError(error) || error.code >= 500 || error.code === 429) throw error
    return refuse(`the logical cluster refuses such pods: ${error.message}`)
  }
}

/** The volumes of the pods; those that a StatefulSet gets from its claim templates stand for their claims. */
function volumesOf(object: KubeObject, { volumes }: Readonly<Record<string, unknown>>): unknown[] {
  const { volumeClaimTemplates = [] } = (object['spec'] ?? {}) as {
    volumeClaimTemplates?: readonly { readonly metadata?: { readonly name?: string } }[]
  }
  const own: readonly unknown[] = Array.isArray(volumes) ? volumes : []
  return [...own, ...volumeClaimTemplates.map(({ metadata }) => ({ name: metadata?.name ?? '', emptyDir: {} }))]
}

/** Refuses a custom resource that the logical cluster refuses, or of which it would lose fields. */
async function refuseCut(
  { upstream, cluster, signal }: AdoptionRequest,
  { gvr }: AdoptableKind,
  object: KubeObject,
): Promise<Verdict | undefined> {
  // The namespace may not be there yet, and another namespace may have an object of this name.
  const { name: _name, ...metadata } = object.metadata
  const asked = { ...object, metadata: { ...metadata, generateName: 'adoption-', namespace: 'default' } }
  try {
    const made = await upstream.create<KubeObject>(gvr, asked, { dryRun: true, signal })
    const [{ metadata: _was, ...before }, { metadata: _is, ...after }] = [asked, made]
    const paths = [...differingPaths(before, after, '')].slice(0, 5)
    return paths.length === 0
      ? undefined
      : refuse(`the definition in logical cluster "${cluster}" would change it: ${paths.join('; ')}`)
  } catch (error) {
    if (!isStatusError(error) || error.code >= 500 || error.code === 429) throw error
    return refuse(`the logical cluster refuses it: ${error.message}`)
  }
}

async function refuseChange(
  request: AdoptionRequest,
  kind: AdoptableKind,
  objects: { readonly copy: KubeObject; readonly live: KubeObject },
): Promise<Verdict | undefined> {
  const paths = await differencesOf(request, kind, objects)
  if (paths.length === 0) return undefined
  const hint =
    kind.resource === 'services' ? ': in a logical cluster, names of Services are those of its own namespaces' : ''
  return refuse(`kcp cannot write it without a change: ${paths.join('; ')}${hint}`)
}

/** The objects of a plan for a status: those that are refused first, and no more than `max`. */
export function listed(objects: readonly PlannedObject[], max: number): PlannedObject[] {
  return objects.toSorted((a, b) => order.indexOf(a.action) - order.indexOf(b.action)).slice(0, max)
}
