// ResourceClaims and ResourceClaimTemplates: their spec and the allocation are immutable.
import { isDeepStrictEqual } from 'node:util'
import type { V1ResourceClaimSpec, V1ResourceClaimTemplateSpec } from '@kubernetes/client-node'
import { fieldForbidden } from '#apimachinery/field/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deviceClaimCauses, type DeviceClaim } from '#virtualapi/kinds/validation/device-requests.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { annotationsCauses, fieldImmutable, labels } from '#virtualapi/kinds/validation/values.ts'
import { resourceClaimStatusCauses, dropDisabledResults, dropReleasedDevices } from './resource-claim-status.ts'

type ClaimSpec = Data<V1ResourceClaimSpec>
type TemplateSpec = Data<V1ResourceClaimTemplateSpec>

const adminLabel = 'resource.kubernetes.io/admin-access'

const devicesOf = (spec: ClaimSpec): DeviceClaim => spec.devices ?? {}

export const resourceClaimRules: KindRules = {
  prepareForCreate(object) {
    object['status'] = {}
    dropDisabled(devicesOf(object['spec'] as ClaimSpec))
  },
  prepareForUpdate(object, old, _context, subresource) {
    dropDisabled(devicesOf(object['spec'] as ClaimSpec))
    if (subresource !== 'status') return
    dropDisabledResults(object)
    dropReleasedDevices(object, old)
  },
  validate(object, old, context) {
    const claim = devicesOf(object['spec'] as ClaimSpec)
    return [
      ...(old === undefined ? adminCauses(object, claim, context) : []),
      ...deviceClaimCauses('spec.devices', claim, { stored: false }),
    ]
  },
  // As upstream, which validates an update twice.
  validateChange: (object, old) => [
    ...specChangeCauses(object, old, 'resource.ResourceClaimSpec'),
    ...deviceClaimCauses('spec.devices', devicesOf(object['spec'] as ClaimSpec), { stored: true }),
  ],
  validateSubresource: (object, old, subresource) =>
    subresource === 'status' ? resourceClaimStatusCauses(object, old, devicesOf(object['spec'] as ClaimSpec)) : [],
}

export const resourceClaimTemplateRules: KindRules = {
  prepareForCreate: (object) => dropDisabled(templateClaim(object)),
  prepareForUpdate: (object) => dropDisabled(templateClaim(object)),
  validate(object, old, context) {
    return [
      ...(old === undefined ? adminCauses(object, templateClaim(object), context) : []),
      ...templateCauses(object, { stored: false }),
    ]
  },
  validateChange: (object, old) => [
    ...specChangeCauses(object, old, 'resource.ResourceClaimTemplateSpec'),
    ...templateCauses(object, { stored: true }),
  ],
}

function templateClaim(object: KubeObject): DeviceClaim {
  return devicesOf((object['spec'] as TemplateSpec).spec)
}

/** Drops fields that upstream's default feature gates drop. Mutates the claim. */
function dropDisabled({ requests }: DeviceClaim): void {
  for (const { exactly, firstAvailable = [] } of (requests as DeviceClaim['requests'] | null) ?? []) {
    delete exactly?.capacity
    for (const alternative of firstAvailable) delete alternative.capacity
  }
}

function specChangeCauses(object: KubeObject, old: KubeObject, struct: string): StatusCause[] {
  const spec = object['spec'] as JsonObject
  return isDeepStrictEqual(spec, old['spec']) ? [] : [invalidInternal('spec', struct, spec, fieldImmutable)]
}

function templateCauses(object: KubeObject, { stored }: { stored: boolean }): StatusCause[] {
  const { metadata = {} } = object['spec'] as TemplateSpec
  const { annotations, labels: own, creationTimestamp: _, ...others } = metadata
  return [
    ...annotationsCauses('spec.metadata.annotations', annotations),
    ...labels('spec.metadata.labels', own),
    ...Object.keys(others).map((member) => fieldForbidden(`spec.metadata.${member}`, 'cannot be set')),
    ...deviceClaimCauses('spec.spec.devices', templateClaim(object), { stored }),
  ]
}

/** adminAccess gives access to devices in use by others; it needs a label on the namespace. */
function adminCauses(object: KubeObject, claim: DeviceClaim, { objects }: RequestContext): StatusCause[] {
  const requests = (claim.requests as DeviceClaim['requests'] | null) ?? []
  const index = requests.findIndex(({ exactly }) => exactly?.adminAccess === true)
  if (index < 0) return []
  const namespace = objects.get('namespaces', '', object.metadata.namespace ?? '')
  const marked = namespace && decodeObject(namespace.bytes).metadata.labels?.[adminLabel] === 'true'
  return marked
    ? []
    : [
        fieldForbidden(
          `spec.devices.requests[${index}].adminAccess`,
          `admin access to devices requires the \`${adminLabel}: true\` label on the containing namespace`,
        ),
      ]
}
