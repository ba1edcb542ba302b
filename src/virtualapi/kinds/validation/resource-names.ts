// Classes of resource names: names that need no prefix, names that are counted in whole units, names that may be
// overcommitted.
import { qualifiedNameErrors } from '#apimachinery/field/index.ts'
import { qualifiedName } from './basic-rules.ts'
import { all, firstOf, must, oneOf } from './vocabulary.ts'

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

/** True for the name of an extended resource, such as the resources of device plugins. */
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

/** Any resource name: a standard one, or a qualified name such as `example.com/gpu`. */
export const resourceName = firstOf<string>(
  qualifiedName,
  must(
    (name) => name.includes('/') || isQuotaName(name) || name === 'storage',
    'must be a standard resource type or fully qualified',
  ),
)
export const containerResource = all<string>(
  resourceName,
  must(
    (name) => name.includes('/') || computed.includes(name) || isHugePages(name),
    'must be a standard resource for containers',
  ),
  must((name) => isNativeResource(name) || isExtendedResource(name), "doesn't follow extended resource name standard"),
)
const ofPod = oneOf(['cpu', 'hugepages-', 'memory'])
/** A resource name in pod-level resources (KEP-2837). */
export const podResource = firstOf<string>(resourceName, (name, report) => {
  if (!isHugePages(name)) report.check(ofPod, name)
})
export const quotaResource = all<string>(
  resourceName,
  must((name) => name.includes('/') || isQuotaName(name), 'must be a standard resource for quota'),
)
