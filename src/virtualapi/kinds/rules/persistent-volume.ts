// PersistentVolumes: a source, capacity, access modes and node affinity; the source is immutable.
import { isDeepStrictEqual } from 'node:util'
import { posix } from 'node:path'
import type { V1PersistentVolumeSpec } from '@kubernetes/client-node'
import { timestamp } from '#async/index.ts'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalDiff } from '#virtualapi/kinds/resources/typed/internal-diff.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { accessModesCauses, volumeModes } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import { nodeSelectorCauses } from '#virtualapi/kinds/validation/node-selector.ts'
import { positiveQuantity } from '#virtualapi/kinds/validation/resources.ts'
import { persistentVolumeWarnings } from '#virtualapi/kinds/warnings/persistent-volume-warnings.ts'
import { fieldImmutable, oneOf, subdomain } from '#virtualapi/kinds/validation/values.ts'
import { addFinalizer } from './add-finalizer.ts'
import { volumeSourceCauses, volumeSourcesOf } from './volume-sources.ts'

type Spec = Data<V1PersistentVolumeSpec>

const specOf = (object: KubeObject): Spec => object['spec'] as Spec
const policies = ['Delete', 'Recycle', 'Retain']

interface VolumeStatus {
  phase?: string
  lastPhaseTransitionTime?: string | undefined
}

export const persistentVolumeRules: KindRules = {
  warningsOf: ({ metadata, spec }) => persistentVolumeWarnings(metadata.annotations, spec as Spec),
  validatesUpdateTwice: true,
  prepareForCreate(object, { now }) {
    addFinalizer(object, 'kubernetes.io/pv-protection')
    const status = object['status'] as VolumeStatus
    status.lastPhaseTransitionTime ??= timestamp(now)
  },
  prepareForUpdate(object, old, { now }, subresource) {
    if (subresource !== 'status') return
    const [status, before] = [object, old].map((one) => one['status'] as VolumeStatus) as [VolumeStatus, VolumeStatus]
    const given = status.lastPhaseTransitionTime
    if (status.phase === before.phase) status.lastPhaseTransitionTime = given ?? before.lastPhaseTransitionTime
    else if (given === undefined || given === before.lastPhaseTransitionTime)
      status.lastPhaseTransitionTime = timestamp(now)
    if (status.lastPhaseTransitionTime === undefined) delete status.lastPhaseTransitionTime
  },
  validate: (object, old) => [
    ...specCauses('spec', specOf(object), object.metadata.name ?? ''),
    ...(old === undefined ? mountOptionCauses(object) : []),
  ],
  validateChange: (object, old) => [...mountOptionCauses(object), ...changeCauses(specOf(object), specOf(old))],
}

const mountOptions = 'volume.beta.kubernetes.io/mount-options'
const withMountOptions = [
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'nfs',
  'rbd',
  'quobyte',
  'iscsi',
  'cinder',
  'cephfs',
  'azureFile',
  'vsphereVolume',
  'azureDisk',
  'photonPersistentDisk',
] as const

/** The annotation for mount options is only allowed on volume types that are mounted with options. */
function mountOptionCauses(object: KubeObject): StatusCause[] {
  if (object.metadata.annotations?.[mountOptions] === undefined) return []
  const spec = specOf(object) as Readonly<Record<string, unknown>>
  return withMountOptions.some((member) => spec[member] !== undefined)
    ? []
    : [fieldForbidden(`metadata.annotations.${mountOptions}`, 'may not specify mount options for this volume type')]
}

function specCauses(path: string, spec: Spec, name: string): StatusCause[] {
  const { accessModes: modes, persistentVolumeReclaimPolicy: policy, storageClassName, volumeMode, hostPath } = spec
  return [
    ...(modes?.length ? [] : [fieldRequired(`${path}.accessModes`)]),
    ...accessModesCauses(`${path}.accessModes`, modes),
    ...capacityCauses(`${path}.capacity`, spec.capacity),
    ...oneOf(`${path}.persistentVolumeReclaimPolicy`, policy, policies),
    ...affinityCauses(`${path}.nodeAffinity`, spec.nodeAffinity),
    ...volumeSourceCauses(path, spec, name),
    ...(hostPath !== undefined &&
    policy === 'Recycle' &&
    posix.resolve('/', hostPath.path) === '/' &&
    hostPath.path.startsWith('/')
      ? [fieldForbidden(`${path}.persistentVolumeReclaimPolicy`, "may not be 'recycle' for a hostPath mount of '/'")]
      : []),
    ...(storageClassName ? subdomain(`${path}.storageClassName`, storageClassName) : []),
    ...(volumeMode === undefined || volumeModes.includes(volumeMode)
      ? []
      : [fieldNotSupported(`${path}.volumeMode`, volumeMode, volumeModes)]),
    ...attributesCauses(path, spec),
  ]
}

function capacityCauses(path: string, capacity: Spec['capacity']): StatusCause[] {
  const names = Object.keys(capacity ?? {})
  return [
    ...(names.length === 0 ? [fieldRequired(path)] : []),
    ...(names.length === 1 && names[0] === 'storage' ? [] : [fieldNotSupported(path, capacity ?? null, ['storage'])]),
    ...Object.entries(capacity ?? {}).flatMap(([name, text]) => [
      ...resourceQuantityCauses(`${path}[${name}]`, text),
      ...positiveQuantity(`${path}[${name}]`, text),
    ]),
  ]
}

function affinityCauses(path: string, affinity: Spec['nodeAffinity']): StatusCause[] {
  if (affinity === undefined) return []
  const required = affinity.required
  return required === undefined
    ? [fieldRequired(`${path}.required`, 'must specify required node constraints')]
    : nodeSelectorCauses(`${path}.required`, required)
}

/** Validates volumeAttributesClassName, which only CSI volumes may have. */
function attributesCauses(path: string, { volumeAttributesClassName: name, csi }: Spec): StatusCause[] {
  if (name === undefined) return []
  const at = `${path}.volumeAttributesClassName`
  return [
    ...(name === '' ? [fieldRequired(at, 'an empty string is disallowed')] : subdomain(at, name)),
    ...(csi === undefined
      ? [fieldRequired(`${path}.csi`, 'has to be specified when using volumeAttributesClassName')]
      : []),
  ]
}

function changeCauses(next: Spec, old: Spec): StatusCause[] {
  const causes: StatusCause[] = []
  const [source, before] = [comparableSource(next, old), volumeSourcesOf(old)]
  if (!isDeepStrictEqual(source, before)) {
    const difference = internalDiff('core.PersistentVolumeSource', before, source)
    const text = `spec.persistentvolumesource is immutable after creation\n${difference}`
    causes.push(fieldForbidden('spec.persistentvolumesource', text))
  }
  // As upstream, the paths of the next two lack `spec`.
  if (next.volumeMode !== old.volumeMode)
    causes.push(fieldInvalid('volumeMode', (next.volumeMode as JsonValue | undefined) ?? null, fieldImmutable))
  if (old.nodeAffinity !== undefined && !sameAffinity(next.nodeAffinity, old.nodeAffinity))
    causes.push(
      invalidInternal(
        'nodeAffinity',
        'core.VolumeNodeAffinity',
        next.nodeAffinity,
        `${fieldImmutable}, except for updating from beta label to GA`,
      ),
    )
  if (old.volumeAttributesClassName !== undefined && next.volumeAttributesClassName === undefined)
    causes.push(fieldForbidden('spec.volumeAttributesClassName', 'update from non-nil value to nil is forbidden'))
  return causes
}

/** The new source without a controllerExpandSecretRef that is newly set, which is allowed. */
function comparableSource(next: Spec, old: Spec): object {
  const source = volumeSourcesOf(next)
  if (next.csi?.controllerExpandSecretRef === undefined || old.csi === undefined) return source
  if (old.csi.controllerExpandSecretRef !== undefined) return source
  const { controllerExpandSecretRef: _r, ...csi } = next.csi
  return { ...source, csi }
}

const newLabels: Readonly<Record<string, string>> = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
}

/** True if the affinities are equal, except that deprecated labels may be replaced by their successors. */
function sameAffinity(next: Spec['nodeAffinity'], old: Spec['nodeAffinity']): boolean {
  const nextTerms = next?.required?.nodeSelectorTerms ?? []
  const oldTerms = old?.required?.nodeSelectorTerms ?? []
  if (next === undefined || nextTerms.length !== oldTerms.length) return false
  return oldTerms.every((term, index) =>
    (['matchExpressions', 'matchFields'] as const).every((member) => {
      const [now, before] = [nextTerms[index]?.[member] ?? [], term[member] ?? []]
      return (
        now.length === before.length &&
        before.every((one, i) => {
          const other = now[i]
          const renamed = other !== undefined && newLabels[one.key] === other.key
          return isDeepStrictEqual(other, renamed ? { ...one, key: other.key } : one)
        })
      )
    }),
  )
}

/** Errors for a quantity of -1 or below; as upstream, without fractions and printed as a number. */
export function resourceQuantityCauses(path: string, text: string): StatusCause[] {
  const { nanos } = quantityOf(text)
  if (nanos > -1_000_000_000n) return []
  return [fieldInvalid(path, Number(nanos / 1_000_000_000n), 'must be a valid resource quantity')]
}
