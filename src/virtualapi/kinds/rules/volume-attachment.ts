// VolumeAttachments: they request that a volume be attached to a node.
import type {
  V1PersistentVolumeSpec,
  V1VolumeAttachmentSpec,
  V1VolumeAttachmentStatus,
  V1VolumeError,
} from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { driverName, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { accessModes } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import {
  all,
  changes,
  fields,
  forbidden,
  immutable,
  nonEmpty,
  optional,
  present,
  validating,
  validatingChange,
  when,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'
import { csiSource } from './volume-sources.ts'

type Spec = Data<V1VolumeAttachmentSpec>
type Status = Partial<Data<V1VolumeAttachmentStatus>>
type Attachment = ObjectOf<Spec, Status>

const oneSource = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
const longestMessage = 1024
const mostMetadataBytes = 256 * 1024

type VolumeSpec = Data<V1PersistentVolumeSpec>

const inContext = 'in the context of inline volumes'

/** Members of the spec that are not volume sources. */
const nonSourceMembers: ReadonlySet<string> = new Set([
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

const not = forbidden(`may not be specified ${inContext}`)

/** An inline volume: the spec of a PersistentVolume, restricted to CSI. */
const inlineVolume = all<VolumeSpec>(
  fields<VolumeSpec>({ claimRef: not, capacity: not }),
  fields<VolumeSpec>({
    csi: present(() => undefined, `has to be specified ${inContext}`),
    accessModes: all<string[] | undefined>(nonEmpty(), accessModes),
    persistentVolumeReclaimPolicy: when((policy) => policy !== 'Retain', forbidden(`may only be Retain ${inContext}`)),
    nodeAffinity: not,
  }),
  fields<VolumeSpec>({ csi: optional(csiSource) }),
  (spec, report) => {
    if (Object.keys(spec).every((member) => nonSourceMembers.has(member)))
      report.required('', 'must specify a volume type')
  },
  fields<VolumeSpec>({
    storageClassName: not,
    volumeMode: when(
      (mode) => mode !== 'Filesystem',
      forbidden(`may not specify volumeMode other than Filesystem ${inContext}`),
    ),
  }),
)

const sourceRule: Rule<Spec['source']> = ({ persistentVolumeName: name, inlineVolumeSpec: inline }, report) => {
  if (inline !== undefined && name !== undefined) report.forbidden('', oneSource)
  else if (inline !== undefined) report.at('inlineVolumeSpec', inlineVolume, inline)
  else if (name === undefined) report.required('', oneSource)
  else if (name === '') report.required('persistentVolumeName', 'must specify non empty persistentVolumeName')
}

const errorRule = optional<Data<V1VolumeError>>(({ message = '' }, report) => {
  // As upstream, whose error names another limit than the one that applies.
  if (byteLength(message) > longestMessage) report.tooLong('message', mostMetadataBytes)
})

const attachment = fields<Attachment>({
  spec: fields<Spec>({ attacher: nonEmpty(), source: sourceRule, nodeName: subdomain }),
  status: optional(
    fields<Status>({
      attachmentMetadata: (metadata = {}, report) => {
        let bytes = 0
        for (const [key, value] of Object.entries(metadata)) bytes += byteLength(key) + byteLength(value)
        if (bytes > mostMetadataBytes) report.tooLong('', mostMetadataBytes)
      },
      attachError: errorRule,
      detachError: errorRule,
    }),
  ),
})

const newAttachment = fields<Spec>({
  attacher: driverName,
  source: fields<Spec['source']>({ persistentVolumeName: optional(subdomain) }),
})
const specChange = changes<Attachment>({ spec: immutable('storage.VolumeAttachmentSpec') })

export const volumeAttachmentRules: KindRules = {
  prepareForUpdate(object, _old, _context, subresource) {
    if (subresource === 'status') dropErrorCodes(object)
  },
  validate: validating<Attachment>((object, report, old) => {
    report.check(attachment, object)
    if (old === undefined) report.at('spec', newAttachment, object.spec)
  }),
  // As upstream, an update is validated twice.
  validateChange: validatingChange(all<Attachment, Attachment>(attachment, specChange)),
  validateSubresource: validatingChange(all<Attachment, Attachment>(attachment, attachment, specChange)),
}

/** Drops errorCode, whose feature gate is off by default. */
function dropErrorCodes({ status }: KubeObject): void {
  for (const member of ['attachError', 'detachError']) {
    const error = isJsonObject(status) ? status[member] : undefined
    if (isJsonObject(error)) delete error['errorCode']
  }
}
