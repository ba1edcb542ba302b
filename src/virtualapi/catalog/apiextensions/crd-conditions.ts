// Computes the status of a CustomResourceDefinition within the write itself, so that the response to the client already
// says whether the names are accepted and the resource is established.
import { aggregateText, causeText, fieldInvalid } from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { structuralViolations } from '#apimachinery/schema/index.ts'
import { approvalCondition } from './api-approval.ts'
import type { CrdCondition, CrdNames, CrdStatus, CustomResourceDefinition } from './crd-types.ts'

/** A definition whose accepted names other definitions of its group cannot use. */
export interface CrdInUse {
  readonly metadata: { readonly name?: string }
  readonly spec: { readonly group: string }
  readonly status?: { readonly acceptedNames?: CrdNames } | undefined
}

/**
 * The status that `crd` should have: accepted names, stored versions, and conditions in upstream's order
 * (NamesAccepted, Established, NonStructuralSchema if it holds, the API approval for protected groups, then all others
 * unchanged). `others`: the CRDs of the same logical cluster; CRDs of other groups are ignored. `now`: the RFC 3339
 * time for conditions whose status changes. Pure.
 */
export function crdStatus(crd: CustomResourceDefinition, others: readonly CrdInUse[], now: string): CrdStatus {
  const { acceptedNames, namesAccepted } = acceptNames(crd, others)
  const old = crd.status?.conditions ?? []
  const wasEstablished = old.find(({ type }) => type === 'Established')
  const isAccepted = namesAccepted.status === 'True'
  const established: Outcome =
    wasEstablished?.status === 'True'
      ? { type: 'Established', status: 'True', reason: wasEstablished.reason, message: wasEstablished.message }
      : isAccepted
        ? {
            type: 'Established',
            status: 'True',
            reason: 'InitialNamesAccepted',
            message: 'the initial names have been accepted',
          }
        : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
  const outcomes = [namesAccepted, established]
  const violations = violationsOf(crd)
  if (violations.length > 0) {
    outcomes.push({
      type: 'NonStructuralSchema',
      status: 'True',
      reason: 'Violations',
      message: aggregateText(violations),
    })
  }
  const approval = approvalCondition(crd)
  if (approval !== undefined) outcomes.push(approval)
  const computed = new Set([
    'NamesAccepted',
    'Established',
    'NonStructuralSchema',
    'KubernetesAPIApprovalPolicyConformant',
  ])
  return {
    conditions: [
      ...outcomes.map((outcome) => withTime(outcome, old, now)),
      ...old.filter(({ type }) => !computed.has(type)),
    ],
    acceptedNames,
    storedVersions: storedVersions(crd),
  }
}

/** Sets the Terminating condition on a deleted definition. `at`: RFC 3339 time. Mutates `crd`. */
export function markTerminating(crd: CustomResourceDefinition, at: string): void {
  const condition: CrdCondition = {
    type: 'Terminating',
    status: 'True',
    lastTransitionTime: at,
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  }
  const others = (crd.status?.conditions ?? []).filter(({ type }) => type !== condition.type)
  crd.status = { ...crd.status, conditions: [...others, condition] }
}

/** True if the resource is served. */
export function isEstablished(crd: CustomResourceDefinition): boolean {
  return crd.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false
}

type Outcome = Omit<CrdCondition, 'lastTransitionTime'>

function withTime(outcome: Outcome, old: readonly CrdCondition[], now: string): CrdCondition {
  const before = old.find(({ type }) => type === outcome.type)
  const lastTransitionTime = before?.status === outcome.status ? before.lastTransitionTime : now
  return {
    type: outcome.type,
    status: outcome.status,
    lastTransitionTime,
    reason: outcome.reason,
    message: outcome.message,
  }
}

function storedVersions({ spec, status }: CustomResourceDefinition): string[] {
  const stored = status?.storedVersions ?? []
  const storage = spec.versions.find((version) => version.storage)?.name
  return storage === undefined || stored.includes(storage) ? [...stored] : [...stored, storage]
}

function violationsOf({ spec }: CustomResourceDefinition): string[] {
  const texts: string[] = []
  if (spec.preserveUnknownFields === true) {
    texts.push(causeText(fieldInvalid('spec.preserveUnknownFields', true, 'must be false')))
  }
  for (const [i, { schema }] of spec.versions.entries()) {
    const root = schema?.openAPIV3Schema
    if (root === undefined) continue
    const path = `spec.versions[${String(i)}].schema.openAPIV3Schema`
    texts.push(...structuralViolations(root, path).map(causeText))
  }
  return texts
}

function acceptNames(
  { metadata, spec, status }: CustomResourceDefinition,
  others: readonly CrdInUse[],
): { acceptedNames: CrdNames; namesAccepted: Outcome } {
  const resources = new Set<string>()
  const kinds = new Set<string>()
  for (const other of others) {
    const names = other.status?.acceptedNames
    if (other.spec.group !== spec.group || other.metadata.name === metadata.name || names === undefined) continue
    for (const name of [names.plural, names.singular ?? '', ...(names.shortNames ?? [])]) resources.add(name)
    for (const kind of [names.kind, names.listKind ?? '']) kinds.add(kind)
  }
  for (const names of [resources, kinds]) names.delete('')
  const asked = spec.names
  const accepted: CrdNames = { ...(status?.acceptedNames ?? { plural: '', kind: '' }) }
  let failure: { reason: string; message: string } | undefined
  const inUse = (name: string): string => `${goQuote(name)} is already in use`
  const take = (key: 'plural' | 'singular' | 'kind' | 'listKind', used: Set<string>, reason: string): void => {
    const name = asked[key] ?? ''
    if (name !== accepted[key] && used.has(name)) failure = { reason, message: inUse(name) }
    else accepted[key] = name
  }
  take('plural', resources, 'PluralConflict')
  take('singular', resources, 'SingularConflict')
  const ours = new Set(accepted.shortNames)
  const taken = (asked.shortNames ?? []).filter((name) => !ours.has(name) && resources.has(name))
  if (taken.length > 0) failure = { reason: 'ShortNamesConflict', message: aggregateText(taken.map(inUse)) }
  else if (asked.shortNames !== undefined) accepted.shortNames = [...asked.shortNames]
  else delete accepted.shortNames
  take('kind', kinds, 'KindConflict')
  take('listKind', kinds, 'ListKindConflict')
  if (asked.categories !== undefined) accepted.categories = [...asked.categories]
  else delete accepted.categories
  const namesAccepted: Outcome =
    failure === undefined
      ? { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
      : { type: 'NamesAccepted', status: 'False', ...failure }
  return { acceptedNames: accepted, namesAccepted }
}
