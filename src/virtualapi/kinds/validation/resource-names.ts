// Names of resources: which are known without a prefix, which are counted in whole numbers, which may be promised twice.
import { fieldInvalid, fieldNotSupported, qualifiedNameErrors } from '../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'

const computed = ['cpu', 'memory', 'ephemeral-storage']
const counted: ReadonlySet<string> = new Set([
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
const quota: ReadonlySet<string> = new Set([
  ...computed,
  ...computed.flatMap((word) => [`requests.${word}`, `limits.${word}`]),
  'requests.storage',
  ...counted,
])

export const isHugePages = (name: string): boolean => name.startsWith('hugepages-')

/** True for a name of Kubernetes' own: without a prefix, or below kubernetes.io. */
export const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')

/** True for the name of something that a device plugin offers. */
export function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith('requests.') && qualifiedNameErrors(`requests.${name}`).length === 0
}

/** True for what comes one by one. */
export const isWhole = (name: string): boolean => counted.has(name) || isExtended(name)

/** True for what may be requested by less than its limit. */
export const mayOvercommit = (name: string): boolean => isNative(name) && !isHugePages(name)

/** True for what quotas know without a prefix. */
export function isQuotaName(name: string): boolean {
  return quota.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-')
}

/** A resource of any kind: one that is known, or a qualified name such as `example.com/gpu`. */
export function resourceNameCauses(path: string, name: string): StatusCause[] {
  const causes = qualifiedNameErrors(name).map((text) => fieldInvalid(path, name, text))
  if (causes.length > 0 || name.includes('/') || isQuotaName(name) || name === 'storage') return causes
  return [fieldInvalid(path, name, 'must be a standard resource type or fully qualified')]
}

export function containerResourceCauses(path: string, name: string): StatusCause[] {
  const causes = resourceNameCauses(path, name)
  if (!name.includes('/')) {
    if (!computed.includes(name) && !isHugePages(name))
      causes.push(fieldInvalid(path, name, 'must be a standard resource for containers'))
  } else if (!isNative(name) && !isExtended(name))
    causes.push(fieldInvalid(path, name, "doesn't follow extended resource name standard"))
  return causes
}

/** Of a whole pod: what KEP-2837 knows. */
export function podResourceCauses(path: string, name: string): StatusCause[] {
  const causes = resourceNameCauses(path, name)
  if (causes.length > 0 || name === 'cpu' || name === 'memory' || isHugePages(name)) return causes
  return [fieldNotSupported(path, name, ['cpu', 'hugepages-', 'memory'])]
}

export function quotaResourceCauses(path: string, name: string): StatusCause[] {
  const causes = resourceNameCauses(path, name)
  if (!name.includes('/') && !isQuotaName(name))
    causes.push(fieldInvalid(path, name, 'must be a standard resource for quota'))
  return causes
}
