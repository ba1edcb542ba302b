// PersistentVolumeClaims and PersistentVolumes.
import { isDeepStrictEqual } from 'node:util'
import type { V1PersistentVolumeClaimSpec, V1PersistentVolumeSpec } from '@kubernetes/client-node'
import { timestamp } from '../../../../async/index.ts'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { quantityOf } from '../typed/quantity.ts'
import { labelSelectorCauses } from '../validation/label-selector.ts'
import { fieldImmutable, oneOf, subdomain } from '../validation/values.ts'

type ClaimSpec = Data<V1PersistentVolumeClaimSpec>
type VolumeSpec = Data<V1PersistentVolumeSpec>

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const volumeModes = ['Block', 'Filesystem']

function protect({ metadata }: KubeObject, finalizer: string): void {
  const finalizers = metadata.finalizers ?? []
  if (!finalizers.includes(finalizer)) metadata.finalizers = [...finalizers, finalizer]
}

/** dataSource and dataSourceRef say the same; whoever sets one gets both. */
function alignSources(spec: ClaimSpec): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource && !dataSourceRef) spec.dataSourceRef = structuredClone(dataSource)
  if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
    const { apiGroup, kind, name } = dataSourceRef
    spec.dataSource = { ...(apiGroup === undefined ? {} : { apiGroup }), kind, name }
  }
}

export const claimRules: KindRules = {
  prepareForCreate(object) {
    alignSources(object['spec'] as ClaimSpec)
    protect(object, 'kubernetes.io/pvc-protection')
  },
  prepareForUpdate(object, _old, _context, subresource) {
    if (subresource === '') alignSources(object['spec'] as ClaimSpec)
  },
  validate: (object) => claimCauses('spec', object['spec'] as ClaimSpec),
  validateChange(object, old) {
    const comparable = (of: KubeObject): ClaimSpec => {
      const spec = structuredClone(of['spec'] as ClaimSpec)
      delete spec.resources
      delete spec.volumeAttributesClassName
      return spec
    }
    const next = comparable(object)
    const before = comparable(old)
    // Binding a claim is setting its volume.
    if (before.volumeName === undefined && next.volumeName !== undefined) delete next.volumeName
    if (!isDeepStrictEqual(next, before))
      return [
        fieldForbidden(
          'spec',
          'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
        ),
      ]
    return shrinkCauses(object, old)
  },
}

function shrinkCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const size = (of: KubeObject): bigint =>
    quantityOf((of['spec'] as ClaimSpec).resources?.requests?.['storage'] ?? '0').nanos
  return size(object) < size(old)
    ? [fieldForbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')]
    : []
}

function modeCauses(path: string, modes: readonly string[] | undefined, missing: string): StatusCause[] {
  if (!modes?.length) return [fieldRequired(path, missing)]
  const causes = modes
    .filter((mode) => !accessModes.includes(mode))
    .map((mode) => fieldNotSupported(path, mode, accessModes))
  if (
    modes.includes('ReadWriteOncePod') &&
    modes.some((mode) => mode !== 'ReadWriteOncePod' && accessModes.includes(mode))
  )
    causes.push(fieldForbidden(path, 'may not use ReadWriteOncePod with other access modes'))
  return causes
}

/** The spec of a claim at `path`; claims in templates of StatefulSets too. */
function claimCauses(path: string, spec: ClaimSpec): StatusCause[] {
  const causes = [
    ...modeCauses(`${path}.accessModes`, spec.accessModes, 'at least 1 access mode is required'),
    ...labelSelectorCauses(`${path}.selector`, spec.selector),
  ]
  const storage = spec.resources?.requests?.['storage']
  if (storage === undefined) causes.push(fieldRequired(`${path}.resources[storage]`))
  else if (quantityOf(storage).nanos <= 0n)
    causes.push(fieldInvalid(`${path}.resources[storage]`, storage, 'must be greater than zero'))
  if (spec.storageClassName) causes.push(...subdomain(`${path}.storageClassName`, spec.storageClassName))
  causes.push(...oneOf(`${path}.volumeMode`, spec.volumeMode, volumeModes))
  return causes
}

const notSources = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])

function sourcesOf(spec: VolumeSpec): string[] {
  return Object.keys(spec).filter((member) => !notSources.has(member))
}

export const volumeRules: KindRules = {
  prepareForCreate(object, { now }) {
    protect(object, 'kubernetes.io/pv-protection')
    const status = object['status'] as { phase?: string; lastPhaseTransitionTime?: string }
    status.lastPhaseTransitionTime ??= timestamp(now)
  },
  validate(object) {
    const spec = object['spec'] as VolumeSpec
    const { capacity = {} } = spec
    const causes = modeCauses('spec.accessModes', spec.accessModes, '')
    if (Object.keys(capacity).length === 0) causes.push(fieldRequired('spec.capacity'))
    else if (capacity['storage'] === undefined || Object.keys(capacity).length > 1)
      causes.push(fieldNotSupported('spec.capacity', capacity, ['storage']))
    else if (quantityOf(capacity['storage']).nanos <= 0n)
      causes.push(fieldInvalid('spec.capacity[storage]', capacity['storage'], 'must be greater than zero'))
    causes.push(
      ...oneOf('spec.persistentVolumeReclaimPolicy', spec.persistentVolumeReclaimPolicy, [
        'Delete',
        'Recycle',
        'Retain',
      ]),
    )
    const sources = sourcesOf(spec)
    if (sources.length === 0) causes.push(fieldRequired('spec', 'must specify a volume type'))
    causes.push(
      ...sources.slice(1).map((source) => fieldForbidden(`spec.${source}`, 'may not specify more than 1 volume type')),
    )
    if (spec.storageClassName) causes.push(...subdomain('spec.storageClassName', spec.storageClassName))
    return [...causes, ...oneOf('spec.volumeMode', spec.volumeMode, volumeModes)]
  },
  validateChange(object, old) {
    const next = object['spec'] as VolumeSpec
    const before = old['spec'] as VolumeSpec
    const source = (of: VolumeSpec): unknown => sourcesOf(of).map((member) => [member, of[member as keyof VolumeSpec]])
    return [
      ...(isDeepStrictEqual(source(next), source(before))
        ? []
        : [fieldForbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation')]),
      ...(next.volumeMode === before.volumeMode
        ? []
        : [fieldInvalid('spec.volumeMode', (next.volumeMode as JsonValue | undefined) ?? null, fieldImmutable)]),
    ]
  },
}
