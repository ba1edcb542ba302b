// PersistentVolumeClaims: mostly immutable requests for storage.
import { isDeepStrictEqual } from 'node:util'
import type { V1PersistentVolumeClaimStatus } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalDiff } from '#virtualapi/kinds/resources/typed/internal-diff.ts'
import { movedVolumeAnnotation } from '#crds/index.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { nonNegativeQuantity, qualifiedName, resourceQuantity } from '#virtualapi/kinds/validation/basic-rules.ts'
import { claimSpec, type ClaimSpec } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import { isNativeResource } from '#virtualapi/kinds/validation/resource-names.ts'
import {
  eachValue,
  fieldImmutable,
  fields,
  firstOf,
  immutable,
  validatingChange,
  validatingSpec,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { claimWarnings } from '#virtualapi/kinds/warnings/persistent-volume-warnings.ts'
import { addFinalizer } from './add-finalizer.ts'

type Status = Data<V1PersistentVolumeClaimStatus>

interface Claim extends KubeObject {
  spec: ClaimSpec
  status?: Status
}

const classAnnotation = 'volume.beta.kubernetes.io/storage-class'
const immutableText =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
const resizeStatuses = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'NodeResizePending',
].sort()

/** Copies dataSource and dataSourceRef to each other, so that both are set and equal. */
function alignSources(spec: ClaimSpec): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource && !dataSourceRef) spec.dataSourceRef = structuredClone(dataSource)
  if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
    const { apiGroup, kind, name } = dataSourceRef
    spec.dataSource = { ...(apiGroup === undefined ? {} : { apiGroup }), kind, name }
  }
}

/**
 * Drops a dataSourceRef with a namespace, as upstream's default feature gates do, unless the stored claim has a
 * dataSourceRef.
 */
function dropForeignSource(spec: ClaimSpec, old?: ClaimSpec): void {
  if (spec.dataSourceRef?.namespace && !old?.dataSourceRef) delete spec.dataSourceRef
}

/**
 * Drops a dataSource that is neither a claim nor a snapshot if there is no dataSourceRef and the stored claim has no
 * dataSource: clients that know other sources set dataSourceRef (KEP-1495).
 */
function dropUnknownSource(spec: ClaimSpec, old?: ClaimSpec): void {
  const { dataSource, dataSourceRef } = spec
  if (!dataSource || dataSourceRef || old?.dataSource) return
  const group = dataSource.apiGroup ?? ''
  const isClaim = dataSource.kind === 'PersistentVolumeClaim' && group === ''
  const isSnapshot = dataSource.kind === 'VolumeSnapshot' && group === 'snapshot.storage.k8s.io'
  if (!isClaim && !isSnapshot) delete spec.dataSource
}

const claimChange: Rule<Claim, Claim> = (next, report, old) => {
  const [annotation, before] = [next, old].map(({ metadata }) => metadata.annotations?.[classAnnotation] ?? '')
  const comparable = comparableSpec(next, old)
  if (!movesClass(next, old) && annotation !== before)
    report.invalid(`metadata.annotations[${classAnnotation}]`, annotation ?? '', fieldImmutable)
  const wanted = hasMoved(next, old)
    ? { ...old.spec, ...pick(next.spec, 'volumeName'), ...pick(comparable, 'storageClassName') }
    : old.spec.volumeName
      ? old.spec
      : withVolume(old.spec, next.spec.volumeName)
  if (!isDeepStrictEqual(comparable, wanted))
    report.forbidden('spec', `${immutableText}\n${internalDiff('core.PersistentVolumeClaimSpec', wanted, comparable)}`)
  // The request may shrink, but not to the current capacity or below.
  const now = storageIn(next.spec.resources?.requests)
  if (now < storageIn(old.spec.resources?.requests) && now <= storageIn(old.status?.capacity))
    report.forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')
  // As upstream, whose path lacks `spec`.
  report.at('volumeMode', fixed, next.spec.volumeMode, old.spec.volumeMode)
  const { volumeAttributesClassName: name } = next.spec
  const applied = (old.status as { currentVolumeAttributesClassName?: string } | undefined)
    ?.currentVolumeAttributesClassName
  if (applied === undefined || name === old.spec.volumeAttributesClassName || name) return
  const to = name === undefined ? 'nil' : 'empty string'
  const detail = `update to ${to} is forbidden when status.currentVolumeAttributesClassName is not nil`
  report.forbidden('spec.volumeAttributesClassName', detail)
}
const fixed = immutable()

const storageIn = (amounts: Readonly<Record<string, string>> | undefined): bigint =>
  quantityOf(amounts?.['storage'] ?? '0').nanos

/** Binding a claim sets its volumeName, which is allowed once. */
function withVolume(spec: ClaimSpec, volumeName: string | undefined): ClaimSpec {
  const { volumeName: _v, ...rest } = spec
  return volumeName === undefined ? rest : { ...rest, volumeName }
}

/**
 * True if the installation, which alone can write this annotation, has moved the data of the claim to another member:
 * then the claim has another volume.
 */
function hasMoved(next: Claim, old: Claim): boolean {
  const [now, before] = [next, old].map(({ metadata }) => metadata.annotations?.[movedVolumeAnnotation])
  return now !== undefined && now !== before && now === next.spec.volumeName
}

function pick<T extends object, K extends keyof T>(object: T, field: K): Partial<Pick<T, K>> {
  return object[field] === undefined ? {} : ({ [field]: object[field] } as Pick<T, K>)
}

/** True if the class moves from the annotation to spec.storageClassName. */
function movesClass(next: Claim, old: Claim): boolean {
  const before = old.metadata.annotations?.[classAnnotation]
  const now = next.metadata.annotations?.[classAnnotation]
  return (
    before !== undefined &&
    old.spec.storageClassName === undefined &&
    next.spec.storageClassName === before &&
    (now === undefined || now === before)
  )
}

/** The new spec with the old values of mutable members, to be compared with the old spec. */
function comparableSpec(next: Claim, old: Claim): ClaimSpec {
  const spec = { ...next.spec }
  const annotation = old.metadata.annotations?.[classAnnotation]
  const fromNothing =
    old.spec.storageClassName === undefined &&
    spec.storageClassName !== undefined &&
    (annotation === undefined || annotation === spec.storageClassName)
  if (fromNothing) delete spec.storageClassName
  if (next.status?.phase !== 'Bound') return spec
  const storage = old.spec.resources?.requests?.['storage']
  if (spec.resources?.requests !== undefined && storage !== undefined)
    spec.resources = { ...spec.resources, requests: { ...spec.resources.requests, storage } }
  delete spec.volumeAttributesClassName
  if (old.spec.volumeAttributesClassName !== undefined)
    spec.volumeAttributesClassName = old.spec.volumeAttributesClassName
  return spec
}

export const persistentVolumeClaimRules: KindRules = {
  warningsOf: (object) => claimWarnings(object.metadata.annotations, (object as Claim).spec.resources),
  validatesUpdateTwice: true,
  prepareForCreate(object) {
    dropForeignSource((object as Claim).spec)
    dropUnknownSource((object as Claim).spec)
    alignSources((object as Claim).spec)
    addFinalizer(object, 'kubernetes.io/pvc-protection')
  },
  prepareForUpdate(object, old, _context, subresource) {
    if (subresource !== '') return
    dropForeignSource((object as Claim).spec, (old as Claim).spec)
    dropUnknownSource((object as Claim).spec, (old as Claim).spec)
    alignSources((object as Claim).spec)
  },
  validate: validatingSpec(claimSpec),
  validateChange: validatingChange(claimChange),
}

/** Names without a domain must be `storage`. */
const resourceKey = firstOf<string>(qualifiedName, (name, report) => {
  if (isNativeResource(name) && name !== 'storage') report.notSupported('', name, ['storage'])
})
/** As upstream, errors about names have the path of the map. */
const allocated = firstOf<string, string>(
  (_, report, name) => report.at('..', resourceKey, name),
  resourceQuantity,
  nonNegativeQuantity,
)
const resizeStatus: Rule<string, string> = (status, report, name) => {
  report.at('..', resourceKey, name)
  if (!resizeStatuses.includes(status)) report.notSupported('..', name, resizeStatuses)
}

/** The status of a PersistentVolumeClaim. */
export const claimStatus = fields<Status>({
  capacity: eachValue(resourceQuantity),
  allocatedResourceStatuses: eachValue(resizeStatus),
  allocatedResources: eachValue(allocated),
})
