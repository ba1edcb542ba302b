// Classes of resource names: which need no prefix, which are counted in whole units, which may be overcommitted.
import { fieldInvalid, fieldNotSupported, qualifiedNameErrors } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

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

/** True for Kubernetes' own names: without a prefix, or below kubernetes.io. */
export const isNativeResource = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')

/** True for an extended resource, such as those of device plugins. */
export function isExtendedResource(name: string): boolean {
  return (
    !isNativeResource(name) && !name.startsWith('requests.') && qualifiedNameErrors(`requests.${name}`).length === 0
  )
}

/** True for resources that are counted in whole units. */
export const isCountedInUnits = (name: string): boolean => counted.has(name) || isExtendedResource(name)

/** True for resources whose request may be below their limit. */
export const mayOvercommit = (name: string): boolean => isNativeResource(name) && !isHugePages(name)

/** True for names without a prefix that a ResourceQuota may limit. */
export function isQuotaName(name: string): boolean {
  return quota.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-')
}

/** Validates any resource name: a standard one, or a qualified name such as `example.com/gpu`. */
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
  } else if (!isNativeResource(name) && !isExtendedResource(name))
    causes.push(fieldInvalid(path, name, "doesn't follow extended resource name standard"))
  return causes
}

/** Validates a resource name in pod-level resources (KEP-2837). */
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
