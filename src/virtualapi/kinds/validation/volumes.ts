// Validation of the volumes of a pod: each has exactly one source.
import type { V1CSIVolumeSource, V1Volume } from '@kubernetes/client-node'
import { dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { driverName, fileMode, isNegative, label, relativePathInside, subdomain } from './basic-rules.ts'
import { azureDisk, flexVolume, hostPath, partition, withMembers } from './cloud-volumes.ts'
import {
  fc,
  flocker,
  iscsi,
  isLongInitiator,
  localSecret,
  longInitiatorText,
  monitors,
  nfs,
  quobyte,
  rbd,
  storageOs,
} from './network-volumes.ts'
import { claimTemplate } from './persistent-volume-claim-spec.ts'
import { downwardFile, keysToPaths, projections } from './projected-volumes.ts'
import { all, each, fields, given, nonEmpty, present, required, rowsOf, type Report, type Rule } from './vocabulary.ts'

export type Volume = Data<V1Volume>
type SourceName = Exclude<keyof Volume, 'name'>
type Source<Member extends SourceName> = NonNullable<Volume[Member]>

// In upstream's order: the first source is validated, and every other source is reported as an error.
const sources: { readonly [Member in SourceName]: Rule<Source<Member>> } = {
  emptyDir: ({ sizeLimit }, report) => {
    if (sizeLimit !== undefined && isNegative(sizeLimit))
      report.forbidden('sizeLimit', 'SizeLimit field must be a valid resource quantity')
  },
  hostPath,
  gitRepo: fields({ repository: nonEmpty(), directory: given(relativePathInside) }),
  gcePersistentDisk: fields({ pdName: nonEmpty(), partition }),
  awsElasticBlockStore: fields({ volumeID: nonEmpty(), partition }),
  secret: fields({ secretName: nonEmpty(), defaultMode: fileMode, items: keysToPaths }),
  nfs,
  iscsi: iscsi('must be valid format starting with iqn, eui, or naa'),
  glusterfs: withMembers('endpoints', 'path'),
  flocker,
  persistentVolumeClaim: withMembers('claimName'),
  rbd,
  cinder: fields({ volumeID: nonEmpty(), secretRef: localSecret }),
  cephfs: monitors,
  quobyte,
  // As upstream, the paths contain neither the index of the file nor the member `items`.
  downwardAPI: all<Source<'downwardAPI'>>(fields({ defaultMode: fileMode }), ({ items }, report) => {
    for (const file of items ?? []) report.check(downwardFile, file)
  }),
  fc,
  flexVolume,
  configMap: fields({ name: nonEmpty(), defaultMode: fileMode, items: keysToPaths }),
  azureFile: withMembers('secretName', 'shareName'),
  vsphereVolume: withMembers('volumePath'),
  photonPersistentDisk: withMembers('pdID'),
  portworxVolume: withMembers('volumeID'),
  azureDisk,
  storageos: all<Source<'storageos'>>(storageOs, fields({ secretRef: localSecret })),
  projected: fields({ defaultMode: fileMode, sources: projections }),
  scaleIO: withMembers('gateway', 'system', 'volumeName'),
  csi: all<Data<V1CSIVolumeSource>>(fields({ driver: driverName }), ({ nodePublishSecretRef: secret }, report) => {
    // Upstream reports an invalid Secret name at this path.
    if (secret?.name) report.at('name', subdomain, secret.name)
    else if (secret) report.required('nodePublishSecretRef.name')
  }),
  ephemeral: fields({ volumeClaimTemplate: present(claimTemplate) }),
  // This rule is never called, because dropDisabledMembers drops image volumes before validation.
  image: () => undefined,
}
const rows = rowsOf<Pick<Volume, SourceName>>(sources)
/** Upstream's names in field paths (including misspelled ones), if they differ from the name of the member. */
const shownAs: Partial<Record<SourceName, string>> = { gcePersistentDisk: 'persistentDisk' }
const forbiddenAs: Partial<Record<SourceName, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' }

interface Context {
  /** The name of the pod, after which claims of ephemeral volumes are named; empty for a template. */
  readonly podName: string
  /** Names of the claims that are created for ephemeral volumes. */
  readonly created: ReadonlySet<string>
  /** The valid volumes so far. */
  readonly good: Map<string, Volume>
}

const volumeName = required(label)

const volumeRule: Rule<Volume, Context> = (volume, report, { podName, created, good }) => {
  const { name, persistentVolumeClaim: claim } = volume
  const before = report.causes.length
  checkSource(volume, podName, report)
  report.at('name', volumeName, name)
  if (good.has(name)) report.duplicate('name', name)
  if (report.causes.length === before) good.set(name, volume)
  if (claim !== undefined && created.has(claim.claimName))
    report.invalid(
      'persistentVolumeClaim.claimName',
      claim.claimName,
      'must not reference a PVC that gets created for an ephemeral volume',
    )
}

const volumeList = each(volumeRule)

/** Validates the volumes of a pod. Returns the valid volumes by name; mounts may refer to these. */
export function checkVolumes(
  list: readonly Volume[] | undefined,
  podName: string,
  report: Report,
): Map<string, Volume> {
  const good = new Map<string, Volume>()
  const created = new Set<string>()
  if (podName !== '') for (const { name, ephemeral } of list ?? []) if (ephemeral) created.add(`${podName}-${name}`)
  report.at('volumes', volumeList, list, { podName, created, good })
  return good
}

function checkSource(volume: Volume, podName: string, report: Report): void {
  let seen = 0
  for (const { member, rule } of rows) {
    const value = volume[member]
    if (value === undefined) continue
    if (++seen > 1) report.forbidden(forbiddenAs[member] ?? member, 'may not specify more than 1 volume type')
    else {
      report.at(shownAs[member] ?? member, rule, value)
      checkDerivedName(volume, member, podName, report)
    }
  }
  if (seen === 0) report.required('', 'must specify a volume type')
}

/** Validates names that are derived from the volume's name. */
function checkDerivedName({ name, iscsi: disk }: Volume, member: SourceName, podName: string, report: Report): void {
  if (member === 'iscsi' && disk !== undefined && isLongInitiator(name, disk))
    report.invalid('name', name, longInitiatorText)
  if (member !== 'ephemeral' || podName === '' || name === '') return
  const claim = `${podName}-${name}`
  for (const detail of dns1123SubdomainErrors(claim))
    report.invalid('name', name, `PVC name ${goQuote(claim)}: ${detail}`)
}
