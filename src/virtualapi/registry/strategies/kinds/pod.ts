// Pods: what a new one starts as, how long a deletion waits for its node.
import type { V1PodSpec, V1PodStatus } from '@kubernetes/client-node'
import type { KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { qosClassOf } from './pod-qos.ts'

export interface Pod extends KubeObject {
  spec: Data<V1PodSpec>
  status: Data<V1PodStatus>
}

const gated = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'SchedulingGated',
  message: 'Scheduling is blocked due to non-empty scheduling gates',
}

export const podRules: KindRules = {
  prepareForCreate(object) {
    const pod = object as Pod
    const { status } = pod
    status.phase ??= 'Pending'
    status.qosClass ??= qosClassOf(pod.spec)
    if ((pod.spec.schedulingGates?.length ?? 0) > 0 && !status.conditions?.length) status.conditions = [gated]
  },
  gracePeriodSeconds(object, asked) {
    const { spec, status } = object as Pod
    const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 0
    const finished = status.phase === 'Failed' || status.phase === 'Succeeded'
    if (!spec.nodeName || finished) return 0
    return seconds < 0 ? 1 : seconds
  },
}
