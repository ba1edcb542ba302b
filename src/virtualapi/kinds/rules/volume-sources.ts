// Validation of the source of a PersistentVolume: exactly one, with stricter rules than in a pod for some.
import type { V1CSIPersistentVolumeSource, V1PersistentVolumeSpec, V1SecretReference } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  azureDiskCauses,
  flexCauses,
  hostPathCauses,
  requiredMemberCauses,
  partitionCauses,
  secretRefCauses,
} from '#virtualapi/kinds/validation/cloud-volumes.ts'
import { driverNameCauses } from '#virtualapi/kinds/validation/driver-name.ts'
import {
  fcCauses,
  flockerCauses,
  iscsiCauses,
  isLongInitiator,
  longInitiatorText,
  monitorsCauses,
  nfsCauses,
  quobyteCauses,
  rbdCauses,
  storageOsCauses,
} from '#virtualapi/kinds/validation/network-volumes.ts'
import { label, withoutParentSteps, required, subdomain } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1PersistentVolumeSpec>
type Source = Exclude<
  keyof Spec,
  | 'accessModes'
  | 'capacity'
  | 'claimRef'
  | 'mountOptions'
  | 'nodeAffinity'
  | 'persistentVolumeReclaimPolicy'
  | 'storageClassName'
  | 'volumeAttributesClassName'
  | 'volumeMode'
>
type Checks = { [Member in Source]: (path: string, source: NonNullable<Spec[Member]>) => StatusCause[] }

// In upstream's order: the first source is validated, any other is reported as one too many.
const checks: Checks = {
  hostPath: hostPathCauses,
  gcePersistentDisk: (path, source) => [
    ...requiredMemberCauses(path, source, ['pdName']),
    ...partitionCauses(path, source.partition),
  ],
  awsElasticBlockStore: (path, source) => [
    ...requiredMemberCauses(path, source, ['volumeID']),
    ...partitionCauses(path, source.partition),
  ],
  glusterfs: (path, source) => [
    ...requiredMemberCauses(path, source, ['endpoints', 'path']),
    ...endpointsNamespaceCauses(`${path}.endpointsNamespace`, source.endpointsNamespace),
  ],
  flocker: flockerCauses,
  nfs: nfsCauses,
  rbd: rbdCauses,
  quobyte: quobyteCauses,
  cephfs: monitorsCauses,
  iscsi: (path, source) => [
    ...iscsiCauses(path, source, 'must be valid format'),
    ...(source.secretRef === undefined ? [] : required(`${path}.secretRef.name`, source.secretRef.name)),
  ],
  cinder: (path, source) => [
    ...requiredMemberCauses(path, source, ['volumeID']),
    ...secretRefCauses(path, source.secretRef, { namespaced: true }),
  ],
  fc: fcCauses,
  flexVolume: flexCauses,
  azureFile: (path, source) => [
    ...requiredMemberCauses(path, source, ['secretName', 'shareName']),
    ...(source.secretNamespace === '' ? [fieldRequired(`${path}.secretNamespace`)] : []),
  ],
  vsphereVolume: (path, source) => requiredMemberCauses(path, source, ['volumePath']),
  photonPersistentDisk: (path, source) => requiredMemberCauses(path, source, ['pdID']),
  portworxVolume: (path, source) => requiredMemberCauses(path, source, ['volumeID']),
  azureDisk: azureDiskCauses,
  scaleIO: (path, source) => requiredMemberCauses(path, source, ['gateway', 'system', 'volumeName']),
  local: (path, { path: directory }) =>
    directory === '' ? [fieldRequired(`${path}.path`)] : withoutParentSteps(`${path}.path`, directory),
  storageos: (path, source) => [
    ...storageOsCauses(path, source),
    ...secretRefCauses(path, source.secretRef, { namespaced: true }),
  ],
  csi: csiCauses,
}
const order = Object.keys(checks) as Source[]

/** The members of a spec that are volume sources. */
export function volumeSourcesOf(spec: Spec): Partial<Spec> {
  return Object.fromEntries(
    order.flatMap((source): [string, unknown][] => (spec[source] === undefined ? [] : [[source, spec[source]]])),
  )
}

/** Validation errors of the source of the volume `name`. */
export function volumeSourceCauses(path: string, spec: Spec, name: string): StatusCause[] {
  const causes: StatusCause[] = []
  let seen = 0
  for (const source of order) {
    const value = spec[source]
    if (value === undefined) continue
    // As upstream, which does not report flexVolume as a second source.
    if (++seen > 1 && source !== 'flexVolume') {
      const shown = source === 'cephfs' ? 'cephFS' : source
      causes.push(fieldForbidden(`${path}.${shown}`, 'may not specify more than 1 volume type'))
      continue
    }
    const check = checks[source] as (path: string, source: unknown) => StatusCause[]
    const shown = source === 'gcePersistentDisk' ? 'persistentDisk' : source
    causes.push(...check(`${path}.${shown}`, value))
    if (source === 'iscsi' && spec.iscsi !== undefined && isLongInitiator(name, spec.iscsi))
      causes.push(fieldInvalid(`${path}.iscsi.targetportal`, spec.iscsi.targetPortal, longInitiatorText))
    if (source === 'local' && spec.nodeAffinity === undefined)
      causes.push(fieldRequired(`${path}.nodeAffinity`, 'Local volume requires node affinity'))
  }
  return seen > 0 ? causes : [...causes, fieldRequired(path, 'must specify a volume type')]
}

function endpointsNamespaceCauses(path: string, namespace: string | undefined): StatusCause[] {
  if (namespace === undefined) return []
  return namespace === ''
    ? [fieldInvalid(path, namespace, 'if the endpointnamespace is set, it must be a valid namespace name')]
    : label(path, namespace)
}

function csiCauses(path: string, source: Data<V1CSIPersistentVolumeSource>): StatusCause[] {
  const secrets = [
    'controllerPublishSecretRef',
    'controllerExpandSecretRef',
    'nodePublishSecretRef',
    'nodeExpandSecretRef',
  ] as const
  return [
    ...driverNameCauses(`${path}.driver`, source.driver),
    ...required(`${path}.volumeHandle`, source.volumeHandle),
    ...secrets.flatMap((member) => secretCauses(`${path}.${member}`, source[member])),
  ]
}

function secretCauses(path: string, secret: Data<V1SecretReference> | undefined): StatusCause[] {
  if (secret === undefined) return []
  const { name, namespace } = secret
  return [
    ...(name ? subdomain(`${path}.name`, name) : [fieldRequired(`${path}.name`)]),
    ...(namespace ? label(`${path}.namespace`, namespace) : [fieldRequired(`${path}.namespace`)]),
  ]
}
