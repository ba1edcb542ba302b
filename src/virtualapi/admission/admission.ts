// Admission: what may change or refuse a write besides the kind's own rules. A list, in order; mutate first, then validate.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import type { RequestContext, ResourceDefinition } from '../resources/resource-definition.ts'

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly definition: ResourceDefinition
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly context: RequestContext
  readonly signal: AbortSignal
}

export interface AdmissionPlugin {
  readonly name: string
  /** May change `object`. Throws a StatusError to refuse. `object` is absent for DELETE, `old` for CREATE. */
  mutate?(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): void
  validate?(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): void | Promise<void>
}

export interface Admission {
  mutate(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): void
  validate(request: AdmissionRequest, object: KubeObject | undefined, old: KubeObject | undefined): Promise<void>
}

/** Runs the plugins in the order given; the first refusal ends it. */
export function createAdmission(plugins: readonly AdmissionPlugin[]): Admission {
  return {
    mutate(request, object, old) {
      for (const plugin of plugins) plugin.mutate?.(request, object, old)
    },
    async validate(request, object, old) {
      for (const plugin of plugins) await plugin.validate?.(request, object, old)
    },
  }
}
