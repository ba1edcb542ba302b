// VolumeAttachments: they request that a volume be attached to a node.
import { isDeepStrictEqual } from 'node:util'
import type { V1VolumeAttachmentSpec, V1VolumeAttachmentStatus, V1VolumeError } from '@kubernetes/client-node'
import { byteLength, fieldForbidden, fieldRequired, fieldTooLong } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { driverNameCauses } from '#virtualapi/kinds/validation/driver-name.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { fieldImmutable, subdomain } from '#virtualapi/kinds/validation/values.ts'
import { inlineVolumeCauses } from './inline-volume.ts'

type Spec = Data<V1VolumeAttachmentSpec>
type Source = Spec['source']

const oneSource = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
const longestMessage = 1024
const mostMetadataBytes = 256 * 1024

export const volumeAttachmentRules: KindRules = {
  prepareForUpdate(object, _old, _context, subresource) {
    if (subresource === 'status') dropErrorCodes(object)
  },
  validate(object, old) {
    const { attacher, source } = object['spec'] as Spec
    const causes = attachmentCauses(object)
    if (old !== undefined) return causes
    causes.push(...driverNameCauses('spec.attacher', attacher))
    const { persistentVolumeName: name } = source
    return name === undefined ? causes : [...causes, ...subdomain('spec.source.persistentVolumeName', name)]
  },
  validateChange: changeCauses,
  validateSubresource: (object, old) => [...attachmentCauses(object), ...changeCauses(object, old)],
}

/** Drops errorCode, whose feature gate is off by default. */
function dropErrorCodes({ status }: KubeObject): void {
  for (const member of ['attachError', 'detachError']) {
    const error = isJsonObject(status) ? status[member] : undefined
    if (isJsonObject(error)) delete error['errorCode']
  }
}

/** As upstream, an update is validated twice. */
function changeCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const spec = object['spec'] as JsonObject
  const changed = !isDeepStrictEqual(spec, old['spec'])
  return [
    ...attachmentCauses(object),
    ...(changed ? [invalidInternal('spec', 'storage.VolumeAttachmentSpec', spec, fieldImmutable)] : []),
  ]
}

function attachmentCauses(object: KubeObject): StatusCause[] {
  const { attacher, source, nodeName } = object['spec'] as Spec
  const {
    attachmentMetadata = {},
    attachError,
    detachError,
  } = (object['status'] as Partial<Data<V1VolumeAttachmentStatus>> | undefined) ?? {}
  const bytes = Object.entries(attachmentMetadata).reduce(
    (sum, [key, value]) => sum + byteLength(key) + byteLength(value),
    0,
  )
  return [
    ...(attacher === '' ? [fieldRequired('spec.attacher')] : []),
    ...sourceCauses('spec.source', source),
    ...subdomain('spec.nodeName', nodeName),
    ...(bytes > mostMetadataBytes ? [fieldTooLong('status.attachmentMetadata', mostMetadataBytes)] : []),
    ...errorCauses('status.attachError', attachError),
    ...errorCauses('status.detachError', detachError),
  ]
}

function sourceCauses(path: string, { persistentVolumeName, inlineVolumeSpec }: Source): StatusCause[] {
  if (inlineVolumeSpec !== undefined)
    return persistentVolumeName === undefined
      ? inlineVolumeCauses(`${path}.inlineVolumeSpec`, inlineVolumeSpec)
      : [fieldForbidden(path, oneSource)]
  if (persistentVolumeName === undefined) return [fieldRequired(path, oneSource)]
  return persistentVolumeName === ''
    ? [fieldRequired(`${path}.persistentVolumeName`, 'must specify non empty persistentVolumeName')]
    : []
}

function errorCauses(path: string, error: Data<V1VolumeError> | undefined): StatusCause[] {
  // As upstream, whose error names another limit than the one that applies.
  return byteLength(error?.message ?? '') > longestMessage ? [fieldTooLong(`${path}.message`, mostMetadataBytes)] : []
}
