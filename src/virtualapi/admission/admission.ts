// Admission: an ordered list of plugins that may change or refuse a write. All mutate first, then all validate. After the plugins
// come the webhooks of the logical cluster.
import type { GroupVersionKind, KubeObject } from '../../apimachinery/meta/index.ts'
import type { RequestContext, ResourceDefinition } from '../resources/resource-definition.ts'

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  readonly definition: ResourceDefinition
  readonly subresource: string
  /** Of the object, where a subresource takes objects of another kind (Binding, PodExecOptions); absent: that of the resource. */
  readonly kind?: GroupVersionKind
  readonly namespace: string
  readonly name: string
  /** True: the request deletes a collection, so webhooks are shown no name. */
  readonly ofCollection?: boolean
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

/** The mutating webhooks of one request. */
export interface MutatingRounds {
  /**
   * Calls them; in the second round only those that asked for it. `object` is absent for DELETE. Resolves with whether the object
   * was changed, rejects with StatusError.
   */
  run(request: AdmissionRequest, object: KubeObject | undefined, old: KubeObject | undefined): Promise<boolean>
}

/** The webhooks that the tenants of a logical cluster have configured. Both return undefined where there are none. */
export interface WebhookAdmission {
  mutating(request: AdmissionRequest): MutatingRounds | undefined
  validate(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): Promise<void> | undefined
}

/** Both return undefined where nobody had to wait. A DELETE has no object to mutate: `validate` calls all webhooks. */
export interface Admission {
  mutate(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): Promise<void> | undefined
  validate(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): Promise<void> | undefined
  /** Asks the webhooks alone, about the object of a subresource such as a Binding; they may change it. */
  admitPart(request: AdmissionRequest, object: KubeObject): Promise<void>
}

/** Runs the plugins in the given order, then the webhooks. Throws the error of the first that refuses. */
export function createAdmission(plugins: readonly AdmissionPlugin[], webhooks?: WebhookAdmission): Admission {
  const mutateInOrder: Admission['mutate'] = (request, object, old) =>
    inOrder(plugins, (plugin) => plugin.mutate?.(request, object, old))
  return {
    mutate(request, object, old) {
      const waiting = mutateInOrder(request, object, old)
      const rounds = webhooks?.mutating(request)
      if (rounds === undefined) return waiting
      return mutateInRounds(rounds, waiting, { request, object, old }, mutateInOrder)
    },
    validate(request, object, old) {
      const waiting = inOrder(plugins, (plugin) => plugin.validate?.(request, object, old))
      const rounds = request.operation === 'DELETE' ? webhooks?.mutating(request) : undefined
      if (rounds !== undefined) return validateDeletion(rounds, waiting, { request, old }, webhooks)
      const asked = waiting === undefined ? webhooks?.validate(request, object, old) : undefined
      return waiting === undefined ? asked : waiting.then(() => webhooks?.validate(request, object, old))
    },
    admitPart: (request, object) => admitPart(webhooks, request, object),
  }
}

async function admitPart(
  webhooks: WebhookAdmission | undefined,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<void> {
  const rounds = webhooks?.mutating(request)
  if (rounds !== undefined && (await rounds.run(request, object, undefined)))
    await rounds.run(request, object, undefined)
  await webhooks?.validate(request, object, undefined)
}

/** Where webhooks changed the object, the plugins run again, and then the webhooks that asked for it. */
async function mutateInRounds(
  rounds: MutatingRounds,
  waiting: Promise<void> | undefined,
  { request, object, old }: { request: AdmissionRequest; object: KubeObject; old: KubeObject | undefined },
  plugins: Admission['mutate'],
): Promise<void> {
  await waiting
  if (!(await rounds.run(request, object, old))) return
  await plugins(request, object, old)
  await rounds.run(request, object, old)
}

async function validateDeletion(
  rounds: MutatingRounds,
  waiting: Promise<void> | undefined,
  { request, old }: { request: AdmissionRequest; old: KubeObject | undefined },
  webhooks: WebhookAdmission | undefined,
): Promise<void> {
  await waiting
  await rounds.run(request, undefined, old)
  await webhooks?.validate(request, undefined, old)
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
