// Validation of the resources of a whole pod: resource claims, and pod-level requests and limits (KEP-2837).
import type { V1PodResourceClaim, V1PodSpec } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { quantityOf, quantityText, totalOfContainers } from '#apimachinery/quantity/index.ts'
import { isHugePages, podResourceCauses } from './resource-names.ts'
import { resourceCauses } from './resources.ts'
import { label, subdomain } from './values.ts'

type PodSpec = Data<V1PodSpec>

/** Validates the resource claims of a pod: names are unique, and each refers to one claim or one template. */
export function podClaimsCauses(path: string, claims: readonly Data<V1PodResourceClaim>[] | undefined): StatusCause[] {
  const names = new Set<string>()
  return (claims ?? []).flatMap(({ name, resourceClaimName: claim, resourceClaimTemplateName: template }, index) => {
    const at = `${path}[${index}]`
    const causes: StatusCause[] = []
    if (name === '') causes.push(fieldRequired(`${at}.name`))
    else if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    else causes.push(...label(`${at}.name`, name))
    names.add(name)
    const both = claim !== undefined && template !== undefined
    const neither = claim === undefined && template === undefined
    if (both || neither)
      causes.push(
        invalidInternal(
          at,
          'core.PodResourceClaim',
          claims?.[index],
          both
            ? 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified'
            : 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
        ),
      )
    if (claim !== undefined) causes.push(...subdomain(`${at}.resourceClaimName`, claim))
    if (template !== undefined) causes.push(...subdomain(`${at}.resourceClaimTemplateName`, template))
    return causes
  })
}

/** Validates pod-level requests and limits: few resources are allowed, and none below the total of the containers. */
export function podResourcesCauses(path: string, spec: PodSpec, claims: ReadonlySet<string>): StatusCause[] {
  const { resources, os } = spec
  if (resources === undefined) return []
  if (os?.name === 'windows') return [fieldForbidden(path, 'may not be set for a windows pod')]
  return [
    ...(resources.claims === undefined
      ? []
      : [fieldForbidden(`${path}.claims`, 'claims may not be set for Resources at pod-level')]),
    ...resourceCauses(path, resources, podResourceCauses, claims),
    ...totalCauses(path, spec, 'requests', () => true),
    ...totalCauses(path, spec, 'limits', isHugePages),
    ...limitCauses(path, spec),
  ]
}

function totalCauses(
  path: string,
  spec: PodSpec,
  which: 'requests' | 'limits',
  counts: (name: string) => boolean,
): StatusCause[] {
  const own = spec.resources?.[which]
  if (own === undefined) return []
  return [...totalOfContainers(spec as unknown as JsonObject, which)].flatMap(([name, total]) => {
    const text = own[name]
    if (text === undefined || !counts(name) || total.nanos <= quantityOf(text).nanos) return []
    const detail = `must be greater than or equal to aggregate container ${which} of ${quantityText(total)}`
    return [fieldInvalid(`${path}.${which}[${name}]`, text, detail)]
  })
}

function limitCauses(path: string, { containers, resources }: PodSpec): StatusCause[] {
  const own = resources?.limits
  if (own === undefined) return []
  return ((containers as PodSpec['containers'] | null) ?? []).flatMap((container, index) =>
    Object.entries(container.resources?.limits ?? {}).flatMap(([name, text]) => {
      const most = own[name]
      return most === undefined || quantityOf(text).nanos <= quantityOf(most).nanos
        ? []
        : [
            fieldInvalid(
              `${path}.containers[${index}][${name}].limits`,
              text,
              `must be less than or equal to pod limits of ${most}`,
            ),
          ]
    }),
  )
}
