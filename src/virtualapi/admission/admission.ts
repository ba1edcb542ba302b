// Admission: an ordered list of plugins that may change or refuse a write. All mutate first, then all validate.
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
  mutate?(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): void | Promise<void>
  validate?(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): void | Promise<void>
}

/** Both return undefined where no plugin had to wait. */
export interface Admission {
  mutate(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): Promise<void> | undefined
  validate(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): Promise<void> | undefined
}

/** Runs the plugins in the given order. Throws the error of the first that refuses. */
export function createAdmission(plugins: readonly AdmissionPlugin[]): Admission {
  return {
    mutate: (request, object, old) => inOrder(plugins, (plugin) => plugin.mutate?.(request, object, old)),
    validate: (request, object, old) => inOrder(plugins, (plugin) => plugin.validate?.(request, object, old)),
  }
}

/** Waits only for plugins that returned a promise: a write costs no microtask for each of the others. */
function inOrder(
  plugins: readonly AdmissionPlugin[],
  run: (plugin: AdmissionPlugin) => void | Promise<void>,
): Promise<void> | undefined {
  for (const [index, plugin] of plugins.entries()) {
    const waiting = run(plugin)
    if (waiting instanceof Promise) return waiting.then(() => inOrder(plugins.slice(index + 1), run))
  }
  return undefined
}
