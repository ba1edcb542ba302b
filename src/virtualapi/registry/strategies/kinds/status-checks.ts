// What controllers may say in a status: numbers that make sense together, phases and addresses that are some.
import { isIP } from 'node:net'
import { fieldInvalid, fieldRequired } from '../../../../apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import { conditionsCauses } from '../validation/conditions.ts'
import { isInteger, nonNegativeQuantity, quotaResources, resourceNameCauses } from '../validation/resources.ts'
import { ipAddress, nonNegative, subdomain } from '../validation/values.ts'

type Check = (object: KubeObject, old: KubeObject) => StatusCause[]

const statusOf = ({ status }: KubeObject): JsonObject => (isJsonObject(status) ? status : {})
const numberIn = (status: JsonObject, member: string): number => {
  const value = status[member]
  return typeof value === 'number' ? value : 0
}

/** None of these members may be below zero. */
function counts(...members: string[]): Check {
  return (object) => {
    const status = statusOf(object)
    return members.flatMap((member) => nonNegative(`status.${member}`, numberIn(status, member)))
  }
}

/** None of these may be more than another one; `called` is its name in messages. */
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

const collisionsStay: Check = (object, old) => {
  const { collisionCount: before } = statusOf(old)
  const { collisionCount: now = 0 } = statusOf(object)
  return typeof before === 'number' && typeof now === 'number' && now < before
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
  collisionsStay,
)

const statefulSet = all(
  counts('replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'),
  counts('observedGeneration', 'collisionCount'),
  atMost('replicas', 'status.replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'),
  atMost('readyReplicas', 'status.readyReplicas', 'availableReplicas'),
  collisionsStay,
)

const daemonSet = counts(
  ...['currentNumberScheduled', 'numberMisscheduled', 'desiredNumberScheduled', 'numberReady', 'observedGeneration'],
  ...['updatedNumberScheduled', 'numberAvailable', 'numberUnavailable', 'collisionCount'],
)

const namespace: Check = ({ metadata, status }) => {
  const { phase = '' } = isJsonObject(status) ? status : {}
  const wanted = metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating'
  if (phase === wanted || typeof phase !== 'string') return []
  const when = wanted === 'Active' ? 'is empty' : 'is not empty'
  return [fieldInvalid('status.Phase', phase, `may only be '${wanted}' if \`deletionTimestamp\` ${when}`)]
}

const claim: Check = (object) => {
  const { capacity } = statusOf(object)
  return Object.entries(isJsonObject(capacity) ? capacity : {}).flatMap(([name, text]) =>
    typeof text === 'string' && text.startsWith('-')
      ? [
          fieldInvalid(
            `status.capacity[${name}]`,
            Number.isNaN(Number(text)) ? text : Number(text),
            'must be a valid resource quantity',
          ),
        ]
      : [],
  )
}

const quota: Check = (object) => {
  const status = statusOf(object)
  return (['hard', 'used'] as const).flatMap((member) => {
    const amounts = status[member]
    return Object.entries(isJsonObject(amounts) ? amounts : {}).flatMap(([name, value]) => {
      const at = `status.${member}[${name}]`
      const text = typeof value === 'string' ? value : ''
      const counted = (quotaResources.has(name) && !/cpu|memory|storage/.test(name)) || name.startsWith('count/')
      return [
        ...resourceNameCauses(at, name, quotaResources, 'quota'),
        ...nonNegativeQuantity(at, text),
        ...(counted && !isInteger(text) ? [fieldInvalid(at, text, 'must be an integer')] : []),
      ]
    })
  })
}

const loadBalancer: Check = (object) => {
  const { loadBalancer: balancer } = statusOf(object)
  const ingress = isJsonObject(balancer) ? balancer['ingress'] : undefined
  return (Array.isArray(ingress) ? ingress : []).flatMap((item, index) => {
    const { ip, hostname } = isJsonObject(item) ? item : {}
    const at = `status.loadBalancer.ingress[${index}]`
    const causes = typeof ip === 'string' && ip !== '' ? ipAddress(`${at}.ip`, ip) : []
    if (typeof hostname !== 'string' || hostname === '') return causes
    causes.push(...subdomain(`${at}.hostname`, hostname))
    if (isIP(hostname) !== 0)
      causes.push(fieldInvalid(`${at}.hostname`, hostname, 'must be a DNS name, not an IP address'))
    return causes
  })
}

const isTrue = (object: KubeObject, type: string): boolean => {
  const { conditions } = statusOf(object)
  return (Array.isArray(conditions) ? conditions : []).some(
    (one: JsonValue) => isJsonObject(one) && one['type'] === type && one['status'] === 'True',
  )
}

/** A complaint that shows no value. */
const wrongConditions = (message: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${message}`,
  field: 'status.conditions',
})

const job: Check = (object, old) => {
  const status = statusOf(object)
  const before = statusOf(old)
  const [complete, failed, met] = ['Complete', 'Failed', 'SuccessCriteriaMet'].map((type) => isTrue(object, type))
  const finished = complete === true || failed === true
  const wasFinished = isTrue(old, 'Complete') || isTrue(old, 'Failed')
  const causes: StatusCause[] = []
  const { completionTime, startTime } = status
  const same = completionTime === before['completionTime'] && startTime === before['startTime']
  if (complete && failed) causes.push(wrongConditions('cannot set Complete=True and Failed=true conditions'))
  if (typeof completionTime === 'string' && !complete)
    causes.push(
      fieldInvalid(
        'status.completionTime',
        completionTime,
        'cannot set completionTime when there is no Complete=True condition',
      ),
    )
  if (complete && completionTime === undefined)
    causes.push(fieldRequired('status.completionTime', 'completionTime is required for Complete jobs'))
  if (!same && typeof completionTime === 'string' && typeof startTime === 'string' && completionTime < startTime)
    causes.push(fieldInvalid('status.completionTime', completionTime, 'must be equal to or after `startTime`'))
  if (failed && !isTrue(old, 'Failed') && !isTrue(object, 'FailureTarget'))
    causes.push(wrongConditions('cannot set Failed=True condition without the FailureTarget=true condition'))
  if (complete && !isTrue(old, 'Complete') && !met)
    causes.push(wrongConditions('cannot set Complete=True condition without the SuccessCriteriaMet=true condition'))
  if (numberIn(status, 'active') > 0 && finished && !wasFinished)
    causes.push(fieldInvalid('status.active', numberIn(status, 'active'), 'active>0 is invalid for finished job'))
  if (finished && !wasFinished && startTime === undefined)
    causes.push(fieldRequired('status.startTime', 'startTime is required for finished job'))
  if (numberIn(status, 'ready') > numberIn(status, 'active'))
    causes.push(fieldInvalid('status.ready', numberIn(status, 'ready'), 'cannot set more ready pods than active'))
  for (const type of ['Complete', 'Failed', 'FailureTarget', 'SuccessCriteriaMet'])
    if (isTrue(old, type) && !isTrue(object, type))
      causes.push(wrongConditions(`cannot disable the ${type}=True condition`))
  for (const member of ['failed', 'succeeded'])
    if (numberIn(status, member) < numberIn(before, member))
      causes.push(fieldInvalid(`status.${member}`, numberIn(status, member), `cannot decrease the ${member} counter`))
  return [...counts('active', 'succeeded', 'failed', 'ready', 'terminating')(object, old), ...causes]
}

const conditions: Check = (object) => conditionsCauses('status.conditions', statusOf(object)['conditions'])

const checks: Readonly<Record<string, Check>> = {
  'v1/Namespace': namespace,
  'v1/PersistentVolumeClaim': claim,
  'v1/ReplicationController': replicas,
  'v1/ResourceQuota': quota,
  'v1/Service': loadBalancer,
  'apps/v1/DaemonSet': daemonSet,
  'apps/v1/Deployment': deployment,
  'apps/v1/ReplicaSet': replicas,
  'apps/v1/StatefulSet': statefulSet,
  'autoscaling/v2/HorizontalPodAutoscaler': counts('currentReplicas', 'desiredReplicas'),
  'batch/v1/Job': job,
  'networking.k8s.io/v1/Ingress': loadBalancer,
  'policy/v1/PodDisruptionBudget': all(
    counts('disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'),
    conditions,
  ),
}

/** Complaints about what came through the subresource `status`; none for kinds whose status nobody checks. */
export function statusCauses(apiVersion: string, object: KubeObject, old: KubeObject): StatusCause[] {
  return checks[`${apiVersion}/${object.kind}`]?.(object, old) ?? []
}
