// Validation of the resources of a whole pod: resource claims, and pod-level requests and limits (KEP-2837).
import type { V1PodResourceClaim, V1PodSpec } from '@kubernetes/client-node'
import { quantityOf, quantityText, totalOfContainers } from '#apimachinery/quantity/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, subdomain } from './basic-rules.ts'
import { isHugePages, podResource } from './resource-names.ts'
import { resourceRequirements } from './resources.ts'
import {
  all,
  each,
  fields,
  firstOf,
  forbidden,
  optional,
  required,
  unique,
  type Report,
  type Rule,
} from './vocabulary.ts'

type PodSpec = Data<V1PodSpec>
type Claim = Data<V1PodResourceClaim>

/** A resource claim of a pod: it has a name of its own, and refers to one claim or one template. */
const podClaim = all<Claim>(
  fields({ name: required(firstOf<string>(unique(), label)) }),
  (claim, report) => {
    const { resourceClaimName: name, resourceClaimTemplateName: template } = claim
    const complain = (detail: string): void => report.invalidStruct('', 'core.PodResourceClaim', claim, detail)
    if (name !== undefined && template !== undefined)
      complain('at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified')
    if (name === undefined && template === undefined)
      complain('must specify one of: `resourceClaimName`, `resourceClaimTemplateName`')
  },
  fields({ resourceClaimName: optional(subdomain), resourceClaimTemplateName: optional(subdomain) }),
)

export const podClaims = each(podClaim)

const requirements = resourceRequirements(podResource)
const noClaims = forbidden('claims may not be set for Resources at pod-level')

/**
 * Pod-level requests and limits: only some resources are allowed, and the amounts must not be below the totals of the
 * containers.
 */
export const podResources: Rule<PodSpec, ReadonlySet<string>> = (spec, report, claims) => {
  const { resources, os } = spec
  if (resources === undefined) return
  if (os?.name === 'windows') {
    report.forbidden('', 'may not be set for a windows pod')
    return
  }
  report.at('claims', noClaims, resources.claims)
  requirements(resources, report, claims)
  compareTotals(spec, 'requests', report)
  compareTotals(spec, 'limits', report)
  for (const [index, container] of ((spec.containers as PodSpec['containers'] | null) ?? []).entries())
    for (const [name, text] of Object.entries(container.resources?.limits ?? {})) {
      const most = resources.limits?.[name]
      if (most !== undefined && quantityOf(text).nanos > quantityOf(most).nanos)
        report.invalid(
          `containers[${index}][${name}].limits`,
          text,
          `must be less than or equal to pod limits of ${most}`,
        )
    }
}

/**
 * Compares pod-level amounts with the totals of the containers. As upstream, only huge pages are compared for limits.
 */
function compareTotals(spec: PodSpec, which: 'requests' | 'limits', report: Report): void {
  const own = spec.resources?.[which]
  if (own === undefined) return
  for (const [name, total] of totalOfContainers(spec, which)) {
    const text = own[name]
    if (text === undefined || (which === 'limits' && !isHugePages(name))) continue
    if (total.nanos > quantityOf(text).nanos)
      report.invalid(
        `${which}[${name}]`,
        text,
        `must be greater than or equal to aggregate container ${which} of ${quantityText(total)}`,
      )
  }
}
