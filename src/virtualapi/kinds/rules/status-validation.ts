// Validation of statuses that controllers write: counters, phases, addresses and conditions.
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  isJsonNumber,
  type Int64,
} from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { nonNegative, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { conditions } from '#virtualapi/kinds/validation/conditions.ts'
import { legacyIp, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import { all, causesOf, each, oneOf, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'
import { jobStatus } from './job-status.ts'
import { claimStatus } from './persistent-volume-claim.ts'
import { quotaStatus } from './resource-quota.ts'

/** A rule at the place of the status, for the whole object. The context is the stored object. */
type StatusRule = Rule<KubeObject, KubeObject>

const statusOf = ({ status }: KubeObject): JsonObject => (isJsonObject(status) ? status : {})
const numberIn = (status: JsonObject, member: string): Int64 => {
  const value = status[member]
  return isJsonNumber(value) ? value : 0
}

/** None of these members may be negative. */
function counts(...members: string[]): StatusRule {
  return (object, report) => {
    const status = statusOf(object)
    for (const member of members) report.at(member, nonNegative, numberIn(status, member))
  }
}

/** None of these members may exceed the member `other`; `called` is its name in errors. */
function atMost(other: string, called: string, ...members: string[]): StatusRule {
  return (object, report) => {
    const status = statusOf(object)
    const most = numberIn(status, other)
    for (const member of members) {
      const value = numberIn(status, member)
      if (value > most) report.invalid(member, value, `cannot be greater than ${called}`)
    }
  }
}

const collisionCountNeverDecreases: StatusRule = (object, report, old) => {
  const { collisionCount: before } = statusOf(old)
  const { collisionCount: now = 0 } = statusOf(object)
  if (isJsonNumber(before) && isJsonNumber(now) && now < before)
    report.invalid('collisionCount', now, 'cannot be decremented')
}

const replicas = all<KubeObject, KubeObject>(
  counts('replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'),
  atMost('replicas', 'status.replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'),
  atMost('readyReplicas', 'readyReplicas', 'availableReplicas'),
)

const deployment = all<KubeObject, KubeObject>(
  counts('observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'),
  counts('unavailableReplicas', 'terminatingReplicas', 'collisionCount'),
  atMost('replicas', 'status.replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'),
  atMost('readyReplicas', 'readyReplicas', 'availableReplicas'),
  collisionCountNeverDecreases,
)

const statefulSet = all<KubeObject, KubeObject>(
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

/** As upstream, whose path has the Go name of the member. */
const namespace: StatusRule = (object, report) => {
  const { phase = '' } = statusOf(object)
  const isLive = object.metadata.deletionTimestamp === undefined
  const wanted = isLive ? 'Active' : 'Terminating'
  if (phase === wanted || typeof phase !== 'string') return
  const when = isLive ? 'is empty' : 'is not empty'
  report.invalid('Phase', phase, `may only be '${wanted}' if \`deletionTimestamp\` ${when}`)
}

const ingressOf = (object: KubeObject): readonly JsonValue[] => {
  const { loadBalancer: balancer } = statusOf(object)
  const ingress = isJsonObject(balancer) ? balancer['ingress'] : undefined
  return Array.isArray(ingress) ? ingress : []
}

const ipMode = oneOf(['Proxy', 'VIP'])

const ingress = each<JsonValue>((item, report) => {
  const { ip, ipMode: mode, hostname } = isJsonObject(item) ? item : {}
  if (typeof ip === 'string' && ip !== '') report.at('ip', legacyIp, ip)
  if (typeof mode === 'string' && !ip) report.forbidden('ipMode', 'may not be specified when `ip` is not set')
  else if (typeof mode === 'string') report.at('ipMode', ipMode, mode)
  if (typeof hostname !== 'string' || hostname === '') return
  report.at('hostname', subdomain, hostname)
  if (tryIp(hostname) !== undefined) report.invalid('hostname', hostname, 'must be a DNS name, not an IP address')
})
const loadBalancer: StatusRule = (object, report) => report.at('loadBalancer.ingress', ingress, ingressOf(object))

const service: StatusRule = (object, report, old) => {
  if (ingressOf(object).length > 0 && (object['spec'] as { type?: string }).type !== 'LoadBalancer')
    report.forbidden('loadBalancer.ingress', "may only be used when `spec.type` is 'LoadBalancer'")
  else loadBalancer(object, report, old)
}

/** The rule for the status alone. */
const status =
  <T>(rule: Rule<T>): StatusRule =>
  (object, report) =>
    report.check(rule, statusOf(object) as unknown as T)

const rules: Readonly<Record<string, StatusRule>> = {
  'v1/Namespace': namespace,
  'v1/PersistentVolumeClaim': status(claimStatus),
  'v1/ReplicationController': replicas,
  'v1/ResourceQuota': status(quotaStatus),
  'v1/Service': service,
  'apps/v1/DaemonSet': daemonSet,
  'apps/v1/Deployment': deployment,
  'apps/v1/ReplicaSet': replicas,
  'apps/v1/StatefulSet': statefulSet,
  'autoscaling/v2/HorizontalPodAutoscaler': counts('currentReplicas', 'desiredReplicas'),
  'batch/v1/Job': jobStatus,
  'networking.k8s.io/v1/Ingress': loadBalancer,
  'policy/v1/PodDisruptionBudget': all<KubeObject, KubeObject>(
    counts('disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'),
    (object, report) => report.at('conditions', conditions, statusOf(object)['conditions']),
  ),
}

/** Validation errors of an update through the subresource `status`; none for kinds whose status is not validated. */
export function statusCauses(apiVersion: string, object: KubeObject, old: KubeObject): StatusCause[] {
  const rule = rules[`${apiVersion}/${object.kind}`]
  return rule === undefined ? [] : causesOf(rule, 'status', object, old)
}
