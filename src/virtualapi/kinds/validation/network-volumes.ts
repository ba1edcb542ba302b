// Validation of network storage volumes, in pods and in PersistentVolumes.
import type {
  V1FCVolumeSource,
  V1FlockerVolumeSource,
  V1ISCSIVolumeSource,
  V1NFSVolumeSource,
  V1QuobyteVolumeSource,
  V1StorageOSVolumeSource,
} from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { between, label, required } from './values.ts'

// The patterns are anchored, so that a long hostile name cannot cause backtracking.
const names: readonly (readonly [prefix: string, form: RegExp])[] = [
  ['iqn', /^iqn\.\d{4}-\d{2}\.[A-Za-z0-9\-.]+:[^,;*&$|\s]+$/],
  ['eui', /^eui.[A-Za-z0-9]{16}$/],
  ['naa', /^naa.[A-Za-z0-9]{32}$/],
]
const pairsText = 'must be a host:port pair or multiple pairs separated by commas'
const maxPairsReported = 100

/** The members that the iSCSI sources of pods and of PersistentVolumes share. */
type Iscsi = Pick<
  Data<V1ISCSIVolumeSource>,
  'targetPortal' | 'iqn' | 'lun' | 'chapAuthDiscovery' | 'chapAuthSession' | 'initiatorName'
> & { readonly secretRef?: { readonly name?: string } }

/**
 * Validates an iSCSI source. `unknownName`: the message for a name without a known prefix; it is shorter for
 * PersistentVolumes.
 */
export function iscsiCauses(path: string, source: Iscsi, unknownName: string): StatusCause[] {
  const { targetPortal, iqn, lun, initiatorName } = source
  const needsSecret = source.chapAuthDiscovery === true || source.chapAuthSession === true
  return [
    ...required(`${path}.targetPortal`, targetPortal),
    ...(iqn === '' ? [fieldRequired(`${path}.iqn`)] : iscsiNameCauses(`${path}.iqn`, iqn, unknownName)),
    ...between(`${path}.lun`, lun, 0, 255),
    ...(needsSecret && source.secretRef === undefined ? [fieldRequired(`${path}.secretRef`)] : []),
    ...(initiatorName === undefined ? [] : iscsiNameCauses(`${path}.initiatorname`, initiatorName, unknownName)),
  ]
}

function iscsiNameCauses(path: string, name: string, unknownName: string): StatusCause[] {
  const found = names.find(([prefix]) => name.startsWith(prefix))
  if (found === undefined) return [fieldInvalid(path, name, unknownName)]
  return found[1].test(name) ? [] : [fieldInvalid(path, name, 'must be valid format')]
}

/** True if `<volume name>:<targetPortal>`, which the kubelet uses as a name, would be too long. */
export function isLongInitiator(volumeName: string, { initiatorName, targetPortal }: Iscsi): boolean {
  return initiatorName !== undefined && Buffer.byteLength(`${volumeName}:${targetPortal}`) > 64
}

/** Upstream's error for `isLongInitiator`. */
export const longInitiatorText =
  'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'

export function fcCauses(path: string, { targetWWNs, wwids, lun }: Data<V1FCVolumeSource>): StatusCause[] {
  const causes: StatusCause[] = []
  if (!targetWWNs?.length && !wwids?.length)
    causes.push(fieldRequired(`${path}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both'))
  if (!targetWWNs?.length) return causes
  if (wwids?.length)
    causes.push(
      fieldInvalid(`${path}.targetWWNs`, targetWWNs, 'targetWWNs and wwids can not be specified simultaneously'),
    )
  if (lun === undefined) causes.push(fieldRequired(`${path}.lun`, 'lun is required if targetWWNs is specified'))
  return [...causes, ...between(`${path}.lun`, lun, 0, 255)]
}

export function nfsCauses(path: string, { server, path: directory }: Data<V1NFSVolumeSource>): StatusCause[] {
  return [
    ...required(`${path}.server`, server),
    ...required(`${path}.path`, directory),
    ...(directory.startsWith('/') ? [] : [fieldInvalid(`${path}.path`, directory, 'must be an absolute path')]),
  ]
}

export function quobyteCauses(path: string, source: Data<V1QuobyteVolumeSource>): StatusCause[] {
  const { registry, tenant = '', volume } = source
  const causes: StatusCause[] = []
  if (registry === '') causes.push(fieldRequired(`${path}.registry`, pairsText))
  else if (Buffer.byteLength(tenant) >= 65)
    causes.push(fieldRequired(`${path}.tenant`, 'must be a UUID and may not exceed a length of 64 characters'))
  else {
    const bad = registry.split(',').filter((pair) => !isHostAndPort(pair))
    causes.push(...bad.slice(0, maxPairsReported).map(() => fieldInvalid(`${path}.registry`, registry, pairsText)))
  }
  return [...causes, ...required(`${path}.volume`, volume)]
}

/** True if Go's net.SplitHostPort accepts the text: `host:port` or `[host]:port`. */
function isHostAndPort(text: string): boolean {
  const colon = text.lastIndexOf(':')
  if (colon < 0) return false
  if (!text.startsWith('[')) return !/[:[\]]/.test(text.slice(0, colon)) && !/[[\]]/.test(text.slice(colon))
  const end = text.indexOf(']')
  return end >= 0 && end + 1 === colon && !text.includes('[', 1) && !text.includes(']', end + 1)
}

export function flockerCauses(path: string, source: Data<V1FlockerVolumeSource>): StatusCause[] {
  const { datasetName = '', datasetUUID = '' } = source
  const causes: StatusCause[] = []
  if (datasetName === '' && datasetUUID === '')
    causes.push(fieldRequired(path, 'one of datasetName and datasetUUID is required'))
  if (datasetName !== '' && datasetUUID !== '')
    causes.push(fieldInvalid(path, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'))
  if (datasetName.includes('/')) causes.push(fieldInvalid(`${path}.datasetName`, datasetName, "must not contain '/'"))
  return causes
}

export function rbdCauses(path: string, source: { monitors: string[] | null; image: string }): StatusCause[] {
  return [...monitorsCauses(path, source), ...required(`${path}.image`, source.image)]
}

/** For RBD and CephFS. */
export function monitorsCauses(path: string, { monitors }: { monitors: string[] | null }): StatusCause[] {
  return monitors?.length ? [] : [fieldRequired(`${path}.monitors`)]
}

type StorageOs = Omit<Data<V1StorageOSVolumeSource>, 'secretRef'>

export function storageOsCauses(path: string, { volumeName, volumeNamespace }: StorageOs): StatusCause[] {
  return [
    ...(volumeName ? label(`${path}.volumeName`, volumeName) : [fieldRequired(`${path}.volumeName`)]),
    ...(volumeNamespace ? label(`${path}.volumeNamespace`, volumeNamespace) : []),
  ]
}
