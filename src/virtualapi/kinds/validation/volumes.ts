// Validation of the volumes of a pod: each has exactly one source.
import type { V1Volume } from '@kubernetes/client-node'
import {
  dns1123SubdomainErrors,
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { claimTemplateCauses } from './persistent-volume-claim-spec.ts'
import {
  azureDiskCauses,
  flexCauses,
  hostPathCauses,
  requiredMemberCauses,
  partitionCauses,
  secretRefCauses,
} from './cloud-volumes.ts'
import { driverNameCauses } from './driver-name.ts'
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
} from './network-volumes.ts'
import { downwardCauses, itemsCauses, projectionsCauses } from './projected-volumes.ts'
import { isNegative } from './resources.ts'
import { relativePathInside as descending, fileMode, label, required, subdomain } from './values.ts'

export type Volume = Data<V1Volume>
type Source = Exclude<keyof Volume, 'name'>
type Checks = { [Member in Source]: (path: string, source: NonNullable<Volume[Member]>) => StatusCause[] }

const iscsiNameText = 'must be valid format starting with iqn, eui, or naa'

// In upstream's order: the first source is validated, any other is reported as one too many.
const checks: Checks = {
  emptyDir: (path, { sizeLimit }) =>
    sizeLimit !== undefined && isNegative(sizeLimit)
      ? [fieldForbidden(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
      : [],
  hostPath: hostPathCauses,
  gitRepo: (path, source) => [
    ...required(`${path}.repository`, source.repository),
    ...descending(`${path}.directory`, source.directory ?? ''),
  ],
  gcePersistentDisk: (path, source) => [
    ...requiredMemberCauses(path, source, ['pdName']),
    ...partitionCauses(path, source.partition),
  ],
  awsElasticBlockStore: (path, source) => [
    ...requiredMemberCauses(path, source, ['volumeID']),
    ...partitionCauses(path, source.partition),
  ],
  secret: (path, { secretName, defaultMode, items }) => [
    ...required(`${path}.secretName`, secretName),
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...itemsCauses(`${path}.items`, items),
  ],
  nfs: nfsCauses,
  iscsi: (path, source) => iscsiCauses(path, source, iscsiNameText),
  glusterfs: (path, source) => requiredMemberCauses(path, source, ['endpoints', 'path']),
  flocker: flockerCauses,
  persistentVolumeClaim: (path, { claimName }) => required(`${path}.claimName`, claimName),
  rbd: rbdCauses,
  cinder: (path, source) => [
    ...requiredMemberCauses(path, source, ['volumeID']),
    ...secretRefCauses(path, source.secretRef),
  ],
  cephfs: monitorsCauses,
  quobyte: quobyteCauses,
  downwardAPI: (path, { defaultMode, items }) => [
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...downwardCauses(path, items),
  ],
  fc: fcCauses,
  flexVolume: flexCauses,
  configMap: (path, { name, defaultMode, items }) => [
    ...required(`${path}.name`, name),
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...itemsCauses(`${path}.items`, items),
  ],
  azureFile: (path, source) => requiredMemberCauses(path, source, ['secretName', 'shareName']),
  vsphereVolume: (path, source) => requiredMemberCauses(path, source, ['volumePath']),
  photonPersistentDisk: (path, source) => requiredMemberCauses(path, source, ['pdID']),
  portworxVolume: (path, source) => requiredMemberCauses(path, source, ['volumeID']),
  azureDisk: azureDiskCauses,
  storageos: (path, source) => [...storageOsCauses(path, source), ...secretRefCauses(path, source.secretRef)],
  projected: (path, { defaultMode, sources }) => [
    ...fileMode(`${path}.defaultMode`, defaultMode),
    ...projectionsCauses(path, sources),
  ],
  scaleIO: (path, source) => requiredMemberCauses(path, source, ['gateway', 'system', 'volumeName']),
  csi: (path, { driver, nodePublishSecretRef: secret }) => [
    ...driverNameCauses(`${path}.driver`, driver),
    // As upstream, which reports an invalid Secret name at this path.
    ...(secret === undefined
      ? []
      : secret.name
        ? subdomain(`${path}.name`, secret.name)
        : [fieldRequired(`${path}.nodePublishSecretRef.name`)]),
  ],
  ephemeral: (path, { volumeClaimTemplate }) =>
    volumeClaimTemplate === undefined
      ? [fieldRequired(`${path}.volumeClaimTemplate`)]
      : claimTemplateCauses(`${path}.volumeClaimTemplate`, volumeClaimTemplate),
  // Never reached: dropDisabledMembers drops image volumes before validation.
  image: () => [],
}
const order = Object.keys(checks) as Source[]
/** Upstream's names in field paths (misspelled ones too), where they differ from the member. */
const shownAs: Partial<Record<Source, string>> = { gcePersistentDisk: 'persistentDisk' }
const forbiddenAs: Partial<Record<Source, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' }

/**
 * Validation errors of the volumes of a pod, and the valid volumes by name (`good`), which mounts may refer to.
 * `podName`: empty for a template; claims of ephemeral volumes are named after the pod.
 */
export function volumesCauses(
  path: string,
  volumes: readonly Volume[] | undefined,
  podName: string,
): { causes: StatusCause[]; good: Map<string, Volume> } {
  const good = new Map<string, Volume>()
  const created = new Set<string>()
  if (podName !== '') for (const { name, ephemeral } of volumes ?? []) if (ephemeral) created.add(`${podName}-${name}`)
  const causes = (volumes ?? []).flatMap((volume, index) => {
    const at = `${path}[${index}]`
    const { name, persistentVolumeClaim: claim } = volume
    const wrong = [
      ...sourceCauses(at, volume, podName),
      ...(name === '' ? [fieldRequired(`${at}.name`)] : label(`${at}.name`, name)),
    ]
    if (good.has(name)) wrong.push(fieldDuplicate(`${at}.name`, name))
    if (wrong.length === 0) good.set(name, volume)
    if (claim !== undefined && created.has(claim.claimName))
      wrong.push(
        fieldInvalid(
          `${at}.persistentVolumeClaim.claimName`,
          claim.claimName,
          'must not reference a PVC that gets created for an ephemeral volume',
        ),
      )
    return wrong
  })
  return { causes, good }
}

function sourceCauses(path: string, volume: Volume, podName: string): StatusCause[] {
  const causes: StatusCause[] = []
  let seen = 0
  for (const source of order) {
    const value = volume[source]
    if (value === undefined) continue
    if (++seen > 1)
      causes.push(fieldForbidden(`${path}.${forbiddenAs[source] ?? source}`, 'may not specify more than 1 volume type'))
    else {
      const check = checks[source] as (path: string, source: unknown) => StatusCause[]
      causes.push(...check(`${path}.${shownAs[source] ?? source}`, value), ...nameCauses(path, volume, source, podName))
    }
  }
  if (seen === 0) causes.push(fieldRequired(path, 'must specify a volume type'))
  return causes
}

/** Validates names that are derived from the volume's name. */
function nameCauses(path: string, { name, iscsi }: Volume, source: Source, podName: string): StatusCause[] {
  if (source === 'iscsi' && iscsi !== undefined && isLongInitiator(name, iscsi))
    return [fieldInvalid(`${path}.name`, name, longInitiatorText)]
  if (source !== 'ephemeral' || podName === '' || name === '') return []
  const claim = `${podName}-${name}`
  return dns1123SubdomainErrors(claim).map((text) =>
    fieldInvalid(`${path}.name`, name, `PVC name ${goQuote(claim)}: ${text}`),
  )
}
