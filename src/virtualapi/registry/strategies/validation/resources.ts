// Requests and limits.
import type { V1ResourceRequirements } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, qualifiedNameErrors } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { quantityOf } from '../typed/quantity.ts'

type Amounts = Readonly<Record<string, string>>

const containerResources = new Set(['cpu', 'memory', 'ephemeral-storage'])
const notInteger = 'must be an integer'

/** A quantity that may not be negative. */
export function nonNegativeQuantity(path: string, text: string): StatusCause[] {
  return quantityOf(text).nanos < 0n ? [fieldInvalid(path, text, 'must be greater than or equal to 0')] : []
}

/** The name of a resource: `cpu`, or a qualified name such as `example.com/gpu`. */
export function resourceNameCauses(
  path: string,
  name: string,
  standard: ReadonlySet<string>,
  what: string,
): StatusCause[] {
  const causes = qualifiedNameErrors(name).map((text) => fieldInvalid(path, name, text))
  if (causes.length > 0) return causes
  if (name.includes('/')) return []
  const known = standard.has(name) || name.startsWith('hugepages-')
  if (known) return []
  const qualified = allStandard.has(name)
    ? []
    : [fieldInvalid(path, name, 'must be a standard resource type or fully qualified')]
  return [...qualified, fieldInvalid(path, name, `must be a standard resource for ${what}`)]
}

const quotaWords = ['cpu', 'memory', 'ephemeral-storage']
/** Every resource name that is known without a prefix. */
export const quotaResources: ReadonlySet<string> = new Set([
  ...quotaWords,
  ...quotaWords.flatMap((word) => [`requests.${word}`, `limits.${word}`]),
  'requests.storage',
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'persistentvolumeclaims',
  'configmaps',
  'services.nodeports',
  'services.loadbalancers',
])
const allStandard: ReadonlySet<string> = new Set([...quotaResources, 'storage'])

/** What is wrong with the resources of a container. */
export function resourceCauses(path: string, resources: Data<V1ResourceRequirements> | undefined): StatusCause[] {
  const { limits = {}, requests = {} } = resources ?? {}
  return [
    ...amountCauses(`${path}.limits`, limits),
    ...Object.entries(requests).flatMap(([name, text]) => [
      ...amountCauses(`${path}.requests`, { [name]: text }),
      ...againstLimit(path, name, text, limits),
    ]),
  ]
}

function amountCauses(path: string, amounts: Amounts): StatusCause[] {
  return Object.entries(amounts).flatMap(([name, text]) => {
    const at = `${path}[${name}]`
    return [
      ...resourceNameCauses(at, name, containerResources, 'containers'),
      ...nonNegativeQuantity(at, text),
      ...(isWhole(name) && !isInteger(text) ? [fieldInvalid(at, text, notInteger)] : []),
    ]
  })
}

/** Extended resources and huge pages come one by one. */
function isWhole(name: string): boolean {
  return name.includes('/') && !name.startsWith('kubernetes.io/')
}

export function isInteger(text: string): boolean {
  return quantityOf(text).nanos % 1_000_000_000n === 0n
}

function againstLimit(path: string, name: string, text: string, limits: Amounts): StatusCause[] {
  const limit = limits[name]
  const at = `${path}.requests`
  const noOvercommit = isWhole(name) || name.startsWith('hugepages-')
  if (limit === undefined)
    return noOvercommit ? [fieldForbidden(`${path}.limits`, `Limit must be set for non overcommitable resources`)] : []
  const request = quantityOf(text).nanos
  const most = quantityOf(limit).nanos
  if (noOvercommit && request !== most) return [fieldInvalid(at, text, `must be equal to ${name} limit of ${limit}`)]
  return request > most ? [fieldInvalid(at, text, `must be less than or equal to ${name} limit of ${limit}`)] : []
}
