// Admission: an ordered list of plugins that may change or refuse a write. All mutate first, then all validate.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import type { RequestContext, ResourceDefinition } from '../registry/resource-definition.ts'

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

/** Runs the plugins in the given order. Throws the error of the first that refuses. */
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
