// Validation of network storage volumes, in pods and in PersistentVolumes.
import type {
  V1FCVolumeSource,
  V1FlockerVolumeSource,
  V1ISCSIVolumeSource,
  V1NFSVolumeSource,
  V1QuobyteVolumeSource,
  V1StorageOSVolumeSource,
} from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label } from './basic-rules.ts'
import { all, between, fields, given, must, nonEmpty, optional, required, type Rule } from './vocabulary.ts'

// The patterns are anchored, so that a long hostile name cannot cause backtracking.
const names: readonly (readonly [prefix: string, form: RegExp])[] = [
  ['iqn', /^iqn\.\d{4}-\d{2}\.[A-Za-z0-9\-.]+:[^,;*&$|\s]+$/],
  ['eui', /^eui.[A-Za-z0-9]{16}$/],
  ['naa', /^naa.[A-Za-z0-9]{32}$/],
]
const pairsText = 'must be a host:port pair or multiple pairs separated by commas'
const maxPairsReported = 100
const lun = between(0, 255)

/** The members that the iSCSI sources of pods and of PersistentVolumes share. */
type Iscsi = Pick<
  Data<V1ISCSIVolumeSource>,
  'targetPortal' | 'iqn' | 'lun' | 'chapAuthDiscovery' | 'chapAuthSession' | 'initiatorName'
> & { readonly secretRef?: { readonly name?: string } }

/** An iSCSI source. `unknownName`: the message for a name without a known prefix, which PersistentVolumes shorten. */
export function iscsi(unknownName: string): Rule<Iscsi> {
  const iscsiName: Rule<string> = (name, report) => {
    const found = names.find(([prefix]) => name.startsWith(prefix))
    if (found === undefined) report.invalid('', name, unknownName)
    else if (!found[1].test(name)) report.invalid('', name, 'must be valid format')
  }
  return all<Iscsi>(
    fields<Iscsi>({ targetPortal: nonEmpty(), iqn: required(iscsiName), lun }),
    ({ chapAuthDiscovery, chapAuthSession, secretRef, initiatorName }, report) => {
      if ((chapAuthDiscovery === true || chapAuthSession === true) && secretRef === undefined)
        report.required('secretRef')
      // Upstream spells this path without a capital letter.
      if (initiatorName !== undefined) report.at('initiatorname', iscsiName, initiatorName)
    },
  )
}

/** True if `<volume name>:<targetPortal>`, which the kubelet uses as a name, would be too long. */
export function isLongInitiator(volumeName: string, { initiatorName, targetPortal }: Iscsi): boolean {
  return initiatorName !== undefined && byteLength(`${volumeName}:${targetPortal}`) > 64
}

/** Upstream's error for `isLongInitiator`. */
export const longInitiatorText =
  'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.'

export const fc: Rule<Data<V1FCVolumeSource>> = ({ targetWWNs, wwids, lun: unit }, report) => {
  if (!targetWWNs?.length) {
    if (!wwids?.length) report.required('targetWWNs', 'must specify either targetWWNs or wwids, but not both')
    return
  }
  if (wwids?.length)
    report.invalid('targetWWNs', targetWWNs, 'targetWWNs and wwids can not be specified simultaneously')
  if (unit === undefined) report.required('lun', 'lun is required if targetWWNs is specified')
  report.at('lun', lun, unit)
}

export const nfs = fields<Data<V1NFSVolumeSource>>({
  server: nonEmpty(),
  path: all<string>(
    nonEmpty(),
    must((path) => path.startsWith('/'), 'must be an absolute path'),
  ),
})

export const quobyte = all<Data<V1QuobyteVolumeSource>>(
  ({ registry, tenant = '' }, report) => {
    if (registry === '') report.required('registry', pairsText)
    else if (byteLength(tenant) >= 65)
      report.required('tenant', 'must be a UUID and may not exceed a length of 64 characters')
    else
      for (const _ of registry
        .split(',')
        .filter((pair) => !isHostAndPort(pair))
        .slice(0, maxPairsReported))
        report.invalid('registry', registry, pairsText)
  },
  fields({ volume: nonEmpty() }),
)

/** True if Go's net.SplitHostPort accepts the text: `host:port` or `[host]:port`. */
function isHostAndPort(text: string): boolean {
  const colon = text.lastIndexOf(':')
  if (colon < 0) return false
  if (!text.startsWith('[')) return !/[:[\]]/.test(text.slice(0, colon)) && !/[[\]]/.test(text.slice(colon))
  const end = text.indexOf(']')
  return end >= 0 && end + 1 === colon && !text.includes('[', 1) && !text.includes(']', end + 1)
}

export const flocker: Rule<Data<V1FlockerVolumeSource>> = ({ datasetName = '', datasetUUID = '' }, report) => {
  if (datasetName === '' && datasetUUID === '') report.required('', 'one of datasetName and datasetUUID is required')
  if (datasetName !== '' && datasetUUID !== '')
    report.invalid('', 'resource', 'datasetName and datasetUUID can not be specified simultaneously')
  if (datasetName.includes('/')) report.invalid('datasetName', datasetName, "must not contain '/'")
}

/** The rule of CephFS volumes. */
export const monitors = fields<{ monitors: string[] | null }>({ monitors: nonEmpty() })
export const rbd = fields<{ monitors: string[] | null; image: string }>({ monitors: nonEmpty(), image: nonEmpty() })

export const storageOs = fields<Omit<Data<V1StorageOSVolumeSource>, 'secretRef'>>({
  volumeName: required(label),
  volumeNamespace: given(label),
})

/** An inline reference to a Secret: its name must be set. Its form is not checked. */
export const localSecret = optional(fields<{ name?: string }>({ name: nonEmpty() }))
/** A reference to a Secret of another namespace. */
export const secretElsewhere = optional(
  fields<{ name?: string; namespace?: string }>({ name: nonEmpty(), namespace: nonEmpty() }),
)
