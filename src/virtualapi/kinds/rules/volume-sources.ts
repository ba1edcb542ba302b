// Validation of the source of a PersistentVolume: exactly one, with stricter rules than in a pod for some.
import type { V1CSIPersistentVolumeSource, V1PersistentVolumeSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { driverName, label, secretReference, withoutParentSteps } from '#virtualapi/kinds/validation/basic-rules.ts'
import { azureDisk, flexVolume, hostPath, partition, withMembers } from '#virtualapi/kinds/validation/cloud-volumes.ts'
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
  secretElsewhere,
  storageOs,
} from '#virtualapi/kinds/validation/network-volumes.ts'
import {
  all,
  fields,
  firstOf,
  must,
  nonEmpty,
  optional,
  required,
  rowsOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'

type Spec = Data<V1PersistentVolumeSpec>
type SourceName = Exclude<
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
type Source<Member extends SourceName> = NonNullable<Spec[Member]>

const secret = optional(secretReference)

export const csiSource = fields<Data<V1CSIPersistentVolumeSource>>({
  driver: driverName,
  volumeHandle: nonEmpty(),
  controllerPublishSecretRef: secret,
  controllerExpandSecretRef: secret,
  nodePublishSecretRef: secret,
  nodeExpandSecretRef: secret,
})

// In upstream's order: the first source is validated, any other is reported as one too many.
const sources: { readonly [Member in SourceName]: Rule<Source<Member>> } = {
  hostPath,
  gcePersistentDisk: fields({ pdName: nonEmpty(), partition }),
  awsElasticBlockStore: fields({ volumeID: nonEmpty(), partition }),
  glusterfs: fields({
    endpoints: nonEmpty(),
    path: nonEmpty(),
    endpointsNamespace: optional(
      firstOf<string>(
        must((name) => name !== '', 'if the endpointnamespace is set, it must be a valid namespace name'),
        label,
      ),
    ),
  }),
  flocker,
  nfs,
  rbd,
  quobyte,
  cephfs: monitors,
  iscsi: all<Source<'iscsi'>>(iscsi('must be valid format'), fields({ secretRef: localSecret })),
  cinder: fields({ volumeID: nonEmpty(), secretRef: secretElsewhere }),
  fc,
  flexVolume,
  azureFile: fields({ secretName: nonEmpty(), shareName: nonEmpty(), secretNamespace: optional(nonEmpty()) }),
  vsphereVolume: withMembers('volumePath'),
  photonPersistentDisk: withMembers('pdID'),
  portworxVolume: withMembers('volumeID'),
  azureDisk,
  scaleIO: withMembers('gateway', 'system', 'volumeName'),
  local: fields({ path: required(withoutParentSteps) }),
  storageos: all<Source<'storageos'>>(storageOs, fields({ secretRef: secretElsewhere })),
  csi: csiSource,
}
const rows = rowsOf<Pick<Spec, SourceName>>(sources)

/** The members of a spec that are volume sources. */
export function volumeSourcesOf(spec: Spec): Partial<Spec> {
  return Object.fromEntries(rows.flatMap(({ member }) => (spec[member] === undefined ? [] : [[member, spec[member]]])))
}

/** The source of the volume with the name in the context. */
export const volumeSource: Rule<Spec, { readonly name: string }> = (spec, report, { name }) => {
  let seen = 0
  for (const { member, rule } of rows) {
    const value = spec[member]
    if (value === undefined) continue
    // As upstream, which does not report flexVolume as a second source.
    if (++seen > 1 && member !== 'flexVolume') {
      report.forbidden(member === 'cephfs' ? 'cephFS' : member, 'may not specify more than 1 volume type')
      continue
    }
    report.at(member === 'gcePersistentDisk' ? 'persistentDisk' : member, rule, value)
    if (member === 'iscsi' && spec.iscsi !== undefined && isLongInitiator(name, spec.iscsi))
      report.invalid('iscsi.targetportal', spec.iscsi.targetPortal, longInitiatorText)
    if (member === 'local' && spec.nodeAffinity === undefined)
      report.required('nodeAffinity', 'Local volume requires node affinity')
  }
  if (seen === 0) report.required('', 'must specify a volume type')
}
