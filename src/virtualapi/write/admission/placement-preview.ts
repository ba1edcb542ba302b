// Warns in a dry run where a workload would run. The decision is the operator's, computed from the objects that this
// server knows. Other writes do not get slower.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { amountsOf } from '#apimachinery/quantity/index.ts'
import {
  clustersAnnotation,
  isPlaceable,
  membersWithCopy,
  memberState,
  workloadKinds,
  type MemberCluster,
} from '#crds/index.ts'
import { choiceOf, decide, memberFacts, unreachableSince, type Candidate, type Decision } from '#placement/index.ts'
import { decodeMetadata, decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { storageKeyOf } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'
import { isTenantsWrite, isWorkload, namespaceOf, rulesFor, type Fleet } from './placement-rules.ts'

/**
 * For a dry run of a workload, or of a change of a namespace's target: adds a warning that says where the workload
 * would run, or why it would be Held.
 */
export function placementPreview(fleet: () => Fleet | undefined): AdmissionPlugin {
  return {
    name: 'PlacementPreview',
    validate(request, object, old) {
      if (!request.context.dryRun || object === undefined || request.subresource !== '' || !isTenantsWrite(request))
        return
      const subject = subjectOf(request, object, old)
      const known = subject && fleet()
      if (subject === undefined || known === undefined || known.all().length === 0) return
      request.context.warnings.push(`${subject.what}${decisionText(decisionFor(request, subject, known))}`)
    },
  }
}

interface Subject {
  readonly workload: KubeObject
  readonly namespace: string
  readonly namespaceObject: DeepReadonly<KubeObject> | undefined
  /** The beginning of the warning. */
  readonly what: string
}

function subjectOf(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): Subject | undefined {
  const namespaceObject = namespaceOf(request, object)
  if (isWorkload(request)) {
    const { namespace } = request
    return isPlaceable(object) ? { workload: object, namespace, namespaceObject, what: '' } : undefined
  }
  if (request.definition.storageKey !== 'namespaces') return undefined
  const { [clustersAnnotation]: target } = object.metadata.annotations ?? {}
  if (target === old?.metadata.annotations?.[clustersAnnotation]) return undefined
  // The decision is computed for a workload without demands of its own.
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: '' }, spec: { replicas: 0 } }
  const namespace = object.metadata.name ?? ''
  return { workload, namespace, namespaceObject, what: 'workloads of the namespace: ' }
}

function decisionFor(request: AdmissionRequest, subject: Subject, fleet: Fleet): Decision {
  const { workload, namespace, namespaceObject } = subject
  const members = fleet.all()
  const rules = rulesFor(request, fleet, { namespaceLabels: namespaceObject?.metadata.labels, withTenants: true })
  return decide(
    choiceOf({
      workload,
      namespace,
      namespaceObject,
      rules,
      claims: claimsIn(request, namespace),
      members: () => members,
      candidates: members.map((member) => candidateOf(member, workload, request)),
      near: membersOfOthers(request, namespace),
      keyOf: (placement) => placement,
    }),
  )
}

/**
 * A member as a candidate. The sum of the requests of other workloads comes from its status, which is some seconds old.
 */
function candidateOf(
  member: DeepReadonly<MemberCluster>,
  workload: KubeObject,
  { context }: AdmissionRequest,
): Candidate {
  const since = unreachableSince(member)
  const { placed = 0, requested = {} } = member.status ?? {}
  return {
    ...memberFacts(member, { clusterLabels: context.cluster.labels, workload }),
    state: memberState(member),
    load: placed,
    requested: amountsOf(requested),
    isFenced: member.spec?.fenced === true && since !== undefined,
    ...(since !== undefined && { unreachableMs: context.now - since }),
  }
}

function claimsIn({ context }: AdmissionRequest, namespace: string): KubeObject[] {
  const stored = context.objects.list({ resource: 'persistentvolumeclaims', namespace })
  return stored.filter(({ size }) => context.work.trySpendBytes(size)).map(({ bytes }) => decodeObject(bytes))
}

/** The members that have another workload of the namespace. */
function membersOfOthers({ context, definition, name }: AdmissionRequest, namespace: string): string[] {
  const found = new Set<string>()
  for (const { gvr } of workloadKinds) {
    const resource = storageKeyOf(gvr)
    for (const { key, size, bytes } of context.objects.list({ resource, namespace })) {
      if (resource === definition.storageKey && key.name === name) continue
      if (!context.work.trySpendBytes(size)) return [...found]
      const other = { apiVersion: '', kind: '', metadata: decodeMetadata(bytes) }
      for (const member of membersWithCopy(other)) found.add(member)
    }
  }
  return [...found]
}

function decisionText({ wanted, held, shares }: Decision): string {
  const named = wanted.kind === 'members' ? wanted.names : []
  const where = named.map((name) => (shares?.[name] === undefined ? name : `${name} (${shares[name]} replicas)`))
  const runs = wanted.kind === 'none' ? 'would run in no member cluster' : `would run in ${where.join(', ')}`
  const why = held.map(({ message }) => message).join('; ')
  if (wanted.kind === 'undecided') return `would be held: ${why}`
  return why === '' ? runs : `${runs}; held: ${why}`
}
