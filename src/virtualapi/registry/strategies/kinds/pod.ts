// Pods: what a new one starts as, what may change, how long a deletion waits for its node.
import type { V1PodStatus } from '@kubernetes/client-node'
import { timestamp } from '../../../../async/index.ts'
import type { KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { completeStruct } from '../typed/decode.ts'
import { podSpecCauses, type PodSpec } from '../validation/pod-spec.ts'
import { qosClassOf } from './pod-qos.ts'
import { podChangeCauses } from './pod-update.ts'

interface Pod extends KubeObject {
  spec: PodSpec
  status: Data<V1PodStatus>
}

export const podRules: KindRules = {
  prepareForCreate(object, { now }) {
    const { spec, status } = object as Pod
    // A copy of a pod that runs in a member comes with its status.
    status.phase ??= 'Pending'
    status.qosClass ??= qosClassOf(spec)
    if ((spec.schedulingGates?.length ?? 0) > 0 && !status.conditions?.length)
      status.conditions = [gated(timestamp(now))]
  },
  validate: (object) => podSpecCauses('spec', (object as Pod).spec),
  validateChange: (object, old) => podChangeCauses((object as Pod).spec, (old as Pod).spec),
  gracePeriodSeconds(object, asked) {
    const { spec, status } = object as Pod
    const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 0
    const finished = status.phase === 'Failed' || status.phase === 'Succeeded'
    if (!spec.nodeName || finished) return 0
    return seconds < 0 ? 1 : seconds
  },
}

function gated(lastTransitionTime: string): NonNullable<Pod['status']['conditions']>[number] {
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'SchedulingGated',
    message: 'Scheduling is blocked due to non-empty scheduling gates',
    lastTransitionTime,
  }
  return completeStruct('core.v1.PodCondition', condition) as unknown as typeof condition
}
