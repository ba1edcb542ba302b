// PersistentVolumes: a source, capacity, access modes and node affinity; the source is immutable.
import { isDeepStrictEqual } from 'node:util'
import { posix } from 'node:path'
import type { V1PersistentVolumeSpec, V1VolumeNodeAffinity } from '@kubernetes/client-node'
import { timestamp } from '#async/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalDiff } from '#virtualapi/kinds/resources/typed/internal-diff.ts'
import { positiveQuantity, resourceQuantity, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { nodeSelector } from '#virtualapi/kinds/validation/node-selector.ts'
import { accessModes, volumeMode } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import {
  all,
  eachValue,
  fieldImmutable,
  fields,
  given,
  immutable,
  nonEmpty,
  oneOf,
  optional,
  present,
  required,
  validating,
  validatingChange,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { persistentVolumeWarnings } from '#virtualapi/kinds/warnings/persistent-volume-warnings.ts'
import { addFinalizer } from './add-finalizer.ts'
import type { KindRules } from './kind-rules.ts'
import { volumeSource, volumeSourcesOf } from './volume-sources.ts'

type Spec = Data<V1PersistentVolumeSpec>
type Volume = ObjectOf<Spec>

interface VolumeStatus {
  phase?: string
  lastPhaseTransitionTime?: string | undefined
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
const mountOptionsRule: Rule<Volume> = ({ metadata, spec }, report) => {
  if (metadata.annotations?.[mountOptions] === undefined) return
  if (!withMountOptions.some((member) => spec[member] !== undefined))
    report.forbidden(`metadata.annotations.${mountOptions}`, 'may not specify mount options for this volume type')
}

const specRule = all<Spec, { readonly name: string }>(
  fields<Spec>({
    accessModes: all<string[] | undefined>(nonEmpty(), accessModes),
    capacity: (capacity, report) => {
      const names = Object.keys(capacity ?? {})
      if (names.length === 0) report.required('')
      if (names.length !== 1 || names[0] !== 'storage') report.notSupported('', capacity ?? null, ['storage'])
      report.check(amounts, capacity)
    },
    persistentVolumeReclaimPolicy: given(oneOf(['Delete', 'Recycle', 'Retain'])),
    nodeAffinity: optional(
      fields<Data<V1VolumeNodeAffinity>>({
        required: present(nodeSelector, 'must specify required node constraints'),
      }),
    ),
  }),
  volumeSource,
  ({ hostPath, persistentVolumeReclaimPolicy: policy }, report) => {
    if (policy === 'Recycle' && hostPath?.path.startsWith('/') && posix.resolve('/', hostPath.path) === '/')
      report.forbidden('persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'")
  },
  fields<Spec>({
    storageClassName: given(subdomain),
    volumeMode,
    volumeAttributesClassName: optional(required(subdomain, 'an empty string is disallowed')),
  }),
  ({ csi, volumeAttributesClassName }, report) => {
    if (volumeAttributesClassName !== undefined && csi === undefined)
      report.required('csi', 'has to be specified when using volumeAttributesClassName')
  },
)
const amounts = eachValue(all<string>(resourceQuantity, positiveQuantity))

/** The immutable members. As upstream, some paths lack `spec`. */
const specChange: Rule<Volume, Volume> = ({ spec: next }, report, { spec: old }) => {
  const [source, before] = [comparableSource(next, old), volumeSourcesOf(old)]
  if (!isDeepStrictEqual(source, before)) {
    const difference = internalDiff('core.PersistentVolumeSource', before, source)
    const text = `spec.persistentvolumesource is immutable after creation\n${difference}`
    report.forbidden('spec.persistentvolumesource', text)
  }
  report.at('volumeMode', fixed, next.volumeMode, old.volumeMode)
  if (old.nodeAffinity !== undefined && !sameAffinity(next.nodeAffinity, old.nodeAffinity))
    report.invalidStruct(
      'nodeAffinity',
      'core.VolumeNodeAffinity',
      next.nodeAffinity,
      `${fieldImmutable}, except for updating from beta label to GA`,
    )
  if (old.volumeAttributesClassName !== undefined && next.volumeAttributesClassName === undefined)
    report.forbidden('spec.volumeAttributesClassName', 'update from non-nil value to nil is forbidden')
}
const fixed = immutable()

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
  validate: validating<Volume>((volume, report, old) => {
    report.at('spec', specRule, volume.spec, { name: volume.metadata.name ?? '' })
    if (old === undefined) report.check(mountOptionsRule, volume)
  }),
  validateChange: validatingChange(all<Volume, Volume>(mountOptionsRule, specChange)),
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
