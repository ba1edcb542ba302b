// A pod, decoded.
import type { V1PodStatus } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'

export interface Pod extends KubeObject {
  spec: PodSpec
  status: Data<V1PodStatus>
}
