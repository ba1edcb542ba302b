// Validation of statuses that controllers write: counters, phases, addresses and conditions.
import { fieldForbidden, fieldInvalid, fieldNotSupported } from '#apimachinery/field/index.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  isJsonNumber,
  type Int64,
} from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { conditionsCauses } from '#virtualapi/kinds/validation/conditions.ts'
import { legacyIpCauses, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import { nonNegative, subdomain } from '#virtualapi/kinds/validation/values.ts'
import { jobStatusCauses } from './job-status.ts'
import { persistentVolumeClaimStatusCauses } from './persistent-volume-claim.ts'
import { quotaStatusCauses } from './resource-quota.ts'

type Check = (object: KubeObject, old: KubeObject) => StatusCause[]

const statusOf = ({ status }: KubeObject): JsonObject => (isJsonObject(status) ? status : {})
const numberIn = (status: JsonObject, member: string): Int64 => {
  const value = status[member]
  return isJsonNumber(value) ? value : 0
}

/** None of these members may be negative. */
function counts(...members: string[]): Check {
  return (object) => {
    const status = statusOf(object)
    return members.flatMap((member) => nonNegative(`status.${member}`, numberIn(status, member)))
  }
}

/** None of these members may exceed the member `other`; `called` is its name in errors. */
function atMost(other: string, called: string, ...members: string[]): Check {
  return (object) => {
    const status = statusOf(object)
    const most = numberIn(status, other)
    return members.flatMap((member) => {
      const value = numberIn(status, member)
      return value > most ? [fieldInvalid(`status.${member}`, value, `cannot be greater than ${called}`)] : []
    })
  }
}

const collisionCountNeverDecreases: Check = (object, old) => {
  const { collisionCount: before } = statusOf(old)
  const { collisionCount: now = 0 } = statusOf(object)
  return isJsonNumber(before) && isJsonNumber(now) && now < before
    ? [fieldInvalid('status.collisionCount', now, 'cannot be decremented')]
    : []
}

const all =
  (...checks: Check[]): Check =>
  (object, old) =>
    checks.flatMap((check) => check(object, old))

const replicas = all(
  counts('replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'),
  atMost('replicas', 'status.replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'),
  atMost('readyReplicas', 'readyReplicas', 'availableReplicas'),
)

const deployment = all(
  counts('observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'),
  counts('unavailableReplicas', 'terminatingReplicas', 'collisionCount'),
  atMost('replicas', 'status.replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'),
  atMost('readyReplicas', 'readyReplicas', 'availableReplicas'),
  collisionCountNeverDecreases,
)

const statefulSet = all(
  counts('replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'),
  counts('observedGeneration', 'collisionCount'),
  atMost('replicas', 'status.replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'),
  atMost('readyReplicas', 'status.readyReplicas', 'availableReplicas'),
  collisionCountNeverDecreases,
)

const daemonSet = counts(
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
)

const namespace: Check = ({ metadata, status }) => {
  const { phase = '' } = isJsonObject(status) ? status : {}
  const wanted = metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating'
  if (phase === wanted || typeof phase !== 'string') return []
  const when = wanted === 'Active' ? 'is empty' : 'is not empty'
  return [fieldInvalid('status.Phase', phase, `may only be '${wanted}' if \`deletionTimestamp\` ${when}`)]
}

const ingressOf = (object: KubeObject): readonly JsonValue[] => {
  const { loadBalancer: balancer } = statusOf(object)
  const ingress = isJsonObject(balancer) ? balancer['ingress'] : undefined
  return Array.isArray(ingress) ? ingress : []
}

const service: Check = (object, old) =>
  ingressOf(object).length > 0 && (object['spec'] as { type?: string }).type !== 'LoadBalancer'
    ? [fieldForbidden('status.loadBalancer.ingress', "may only be used when `spec.type` is 'LoadBalancer'")]
    : loadBalancer(object, old)

const ipModes = ['Proxy', 'VIP']

const loadBalancer: Check = (object) =>
  ingressOf(object).flatMap((item, index) => {
    const { ip, ipMode, hostname } = isJsonObject(item) ? item : {}
    const at = `status.loadBalancer.ingress[${index}]`
    const causes = typeof ip === 'string' && ip !== '' ? legacyIpCauses(`${at}.ip`, ip) : []
    if (typeof ipMode === 'string' && !ip)
      causes.push(fieldForbidden(`${at}.ipMode`, 'may not be specified when `ip` is not set'))
    else if (typeof ipMode === 'string' && !ipModes.includes(ipMode))
      causes.push(fieldNotSupported(`${at}.ipMode`, ipMode, ipModes))
    if (typeof hostname !== 'string' || hostname === '') return causes
    causes.push(...subdomain(`${at}.hostname`, hostname))
    if (tryIp(hostname) !== undefined)
      causes.push(fieldInvalid(`${at}.hostname`, hostname, 'must be a DNS name, not an IP address'))
    return causes
  })

const conditions: Check = (object) => conditionsCauses('status.conditions', statusOf(object)['conditions'])

const checks: Readonly<Record<string, Check>> = {
  'v1/Namespace': namespace,
  'v1/PersistentVolumeClaim': persistentVolumeClaimStatusCauses,
  'v1/ReplicationController': replicas,
  'v1/ResourceQuota': quotaStatusCauses,
  'v1/Service': service,
  'apps/v1/DaemonSet': daemonSet,
  'apps/v1/Deployment': deployment,
  'apps/v1/ReplicaSet': replicas,
  'apps/v1/StatefulSet': statefulSet,
  'autoscaling/v2/HorizontalPodAutoscaler': counts('currentReplicas', 'desiredReplicas'),
  'batch/v1/Job': jobStatusCauses,
  'networking.k8s.io/v1/Ingress': loadBalancer,
  'policy/v1/PodDisruptionBudget': all(
    counts('disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'),
    conditions,
  ),
}

/** Validation errors of an update through the subresource `status`; none for kinds whose status is not validated. */
export function statusCauses(apiVersion: string, object: KubeObject, old: KubeObject): StatusCause[] {
  return checks[`${apiVersion}/${object.kind}`]?.(object, old) ?? []
}
