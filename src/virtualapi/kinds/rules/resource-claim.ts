// ResourceClaims and ResourceClaimTemplates: their spec and the allocation are immutable.
import type { V1ResourceClaimSpec, V1ResourceClaimTemplateSpec } from '@kubernetes/client-node'
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deviceClaim, type DeviceClaim } from '#virtualapi/kinds/validation/device-requests.ts'
import { templateMetadata } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import {
  all,
  causesOf,
  changes,
  fields,
  immutable,
  validatingChange,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'
import { dropDisabledResults, dropReleasedDevices, resourceClaimStatus } from './resource-claim-status.ts'

type ClaimSpec = Data<V1ResourceClaimSpec>
type TemplateSpec = Data<V1ResourceClaimTemplateSpec>
type Claim = ObjectOf<ClaimSpec>
type Template = ObjectOf<TemplateSpec>

const adminLabel = 'resource.kubernetes.io/admin-access'

const devicesOf = (spec: ClaimSpec): DeviceClaim => spec.devices ?? {}
const claimOf = (object: KubeObject): DeviceClaim => devicesOf(object['spec'] as ClaimSpec)
const templateClaim = (object: KubeObject): DeviceClaim => devicesOf((object['spec'] as TemplateSpec).spec)

/** adminAccess gives access to devices in use by others; it needs a label on the namespace. */
const adminAccess: Rule<DeviceClaim, { readonly metadata: ObjectMeta; readonly context: RequestContext }> = (
  claim,
  report,
  { metadata, context },
) => {
  const requests = (claim.requests as DeviceClaim['requests'] | null) ?? []
  const index = requests.findIndex(({ exactly }) => exactly?.adminAccess === true)
  if (index < 0) return
  const namespace = context.objects.get('namespaces', '', metadata.namespace ?? '')
  const marked = namespace && decodeObject(namespace.bytes).metadata.labels?.[adminLabel] === 'true'
  if (!marked)
    report.forbidden(
      `requests[${index}].adminAccess`,
      `admin access to devices requires the \`${adminLabel}: true\` label on the containing namespace`,
    )
}

/** A claim; `stored`: unchanged since it was stored. As upstream, an update is validated twice, once so. */
const claimRule =
  (stored: boolean): Rule<Claim> =>
  ({ spec }, report) =>
    report.at('spec.devices', deviceClaim, devicesOf(spec), { stored })

export const resourceClaimRules: KindRules = {
  prepareForCreate(object) {
    object['status'] = {}
    dropDisabled(claimOf(object))
  },
  prepareForUpdate(object, old, _context, subresource) {
    dropDisabled(claimOf(object))
    if (subresource !== 'status') return
    dropDisabledResults(object)
    dropReleasedDevices(object, old)
  },
  validate: (object, old, context) => [
    ...(old === undefined
      ? causesOf(adminAccess, 'spec.devices', claimOf(object), { metadata: object.metadata, context })
      : []),
    ...causesOf(claimRule(false), '', object as unknown as Claim),
  ],
  validateChange: validatingChange(
    all<Claim, Claim>(changes({ spec: immutable('resource.ResourceClaimSpec') }), claimRule(true)),
  ),
  validateSubresource: (object, old, subresource) =>
    subresource === 'status' ? causesOf(resourceClaimStatus, '', object, { old, claim: claimOf(object) }) : [],
}

const templateRule = (stored: boolean): Rule<Template> =>
  fields<Template>({
    spec: fields<TemplateSpec>({
      metadata: templateMetadata,
      spec: (spec, report) => report.at('devices', deviceClaim, devicesOf(spec), { stored }),
    }),
  })
const newTemplate = templateRule(false)

export const resourceClaimTemplateRules: KindRules = {
  prepareForCreate: (object) => dropDisabled(templateClaim(object)),
  prepareForUpdate: (object) => dropDisabled(templateClaim(object)),
  // As upstream, whose path of adminAccess has `spec` once.
  validate: (object, old, context) => [
    ...(old === undefined
      ? causesOf(adminAccess, 'spec.devices', templateClaim(object), { metadata: object.metadata, context })
      : []),
    ...causesOf(newTemplate, '', object as unknown as Template),
  ],
  validateChange: validatingChange(
    all<Template, Template>(changes({ spec: immutable('resource.ResourceClaimTemplateSpec') }), templateRule(true)),
  ),
}

/** Drops fields that upstream's default feature gates drop. Mutates the claim. */
function dropDisabled({ requests }: DeviceClaim): void {
  for (const { exactly, firstAvailable = [] } of (requests as DeviceClaim['requests'] | null) ?? []) {
    delete exactly?.capacity
    for (const alternative of firstAvailable) delete alternative.capacity
  }
}
