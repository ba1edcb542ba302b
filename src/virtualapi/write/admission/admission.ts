// Admission: an ordered list of plugins that may change or refuse a write. All mutate first, then all validate. After
// the plugins come the mutating policies and the webhooks of the logical cluster.
import type { GroupVersionKind, KubeObject } from '#apimachinery/meta/index.ts'
import { inSpan, processTracer, type Tracer } from '#telemetry/index.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  readonly definition: ResourceDefinition
  readonly subresource: string
  /**
   * The kind of the object, if a subresource takes objects of another kind (Binding, PodExecOptions). Absent: the kind
   * of the resource.
   */
  readonly kind?: GroupVersionKind
  readonly namespace: string
  readonly name: string
  /** True: the request deletes a collection, so webhooks get no name. */
  readonly ofCollection?: boolean
  readonly context: RequestContext
  readonly signal: AbortSignal
}

export interface AdmissionPlugin {
  readonly name: string
  /** True: the plugin validates the objects of subresources, such as Bindings, too. */
  readonly validatesParts?: boolean
  /**
   * May change `object`. Throws a StatusError to refuse. `old` is undefined for CREATE; in `validate`, `object` is
   * undefined for DELETE. Both return a promise only if they have to wait, because every write of every kind calls
   * them.
   */
  mutate?(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): void | Promise<void>
  validate?(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): void | Promise<void>
}

/** The mutating policies or the mutating webhooks of one request. */
export interface MutatingRounds {
  /**
   * Runs the policies or webhooks; in the second round only those with reinvocationPolicy IfNeeded. `object` is
   * undefined for DELETE. Resolves with true if the object was changed, rejects with StatusError.
   */
  run(request: AdmissionRequest, object: KubeObject | undefined, old: KubeObject | undefined): Promise<boolean>
}

/** Rounds whose policies or webhooks are not in memory yet; undefined: there are none. */
export class LateRounds implements MutatingRounds {
  readonly #rounds: Promise<MutatingRounds | undefined>

  constructor(rounds: Promise<MutatingRounds | undefined>) {
    this.#rounds = rounds
    // A failure is reported when the rounds run.
    rounds.catch(() => undefined)
  }

  async run(...write: Parameters<MutatingRounds['run']>): Promise<boolean> {
    const rounds = await this.#rounds
    return rounds?.run(...write) ?? false
  }
}

/** The tenants' configuration that changes requests of a logical cluster. */
export interface MutatingAdmission {
  /** The policies or webhooks of a request; undefined if none are configured. */
  mutating(request: AdmissionRequest): MutatingRounds | undefined
}

/** The webhooks that the tenants of a logical cluster have configured. */
export interface WebhookAdmission extends MutatingAdmission {
  /** Calls the validating webhooks. Returns undefined if there are none. */
  validate(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): Promise<void> | undefined
}

/**
 * `mutate` and `validate` return undefined if no plugin, policy or webhook has to be awaited. A DELETE has no object to
 * mutate, so `validate` calls all webhooks for it.
 */
export interface Admission {
  mutate(request: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): Promise<void> | undefined
  validate(
    request: AdmissionRequest,
    object: KubeObject | undefined,
    old: KubeObject | undefined,
  ): Promise<void> | undefined
  /** Runs policies and webhooks for the object of a subresource such as a Binding; they may change that object. */
  admitPart(request: AdmissionRequest, object: KubeObject): Promise<void>
}

/** The parts of admission, in the order in which they run. */
export interface AdmissionDependencies {
  readonly plugins: readonly AdmissionPlugin[]
  /** In this order. */
  readonly policies?: readonly MutatingAdmission[]
  readonly webhooks?: WebhookAdmission
}

/**
 * Runs the plugins in the given order, then the mutating policies, then the webhooks. Throws the error of the first one
 * that refuses.
 */
export function createAdmission({ plugins, policies = [], webhooks }: AdmissionDependencies): Admission {
  const mutators = plugins.filter((plugin) => 'mutate' in plugin)
  const validators = plugins.filter((plugin) => 'validate' in plugin)
  const mutateInOrder: Admission['mutate'] = (request, object, old) =>
    inOrder(mutators, (plugin) => plugin.mutate?.(request, object, old))
  const roundsOf = (request: AdmissionRequest): MutatingRounds | undefined => {
    let rounds: MutatingRounds | undefined
    for (const part of policies) rounds = oneAfterTheOther(rounds, part.mutating(request))
    return oneAfterTheOther(rounds, webhooks?.mutating(request))
  }
  const parts = plugins.filter(({ validatesParts = false }) => validatesParts)
  const admission: Admission = {
    mutate(request, object, old) {
      const waiting = mutateInOrder(request, object, old)
      const rounds = roundsOf(request)
      if (rounds === undefined) return waiting
      return mutateInRounds(rounds, waiting, { request, object, old }, mutateInOrder)
    },
    validate(request, object, old) {
      const waiting = inOrder(validators, (plugin) => plugin.validate?.(request, object, old))
      const rounds = request.operation === 'DELETE' ? webhooks?.mutating(request) : undefined
      if (rounds !== undefined) return validateDeletion(rounds, waiting, { request, old }, webhooks)
      const asked = waiting === undefined ? webhooks?.validate(request, object, old) : undefined
      return waiting === undefined ? asked : waiting.then(() => webhooks?.validate(request, object, old))
    },
    async admitPart(request, object) {
      const rounds = roundsOf(request)
      if (rounds !== undefined && (await rounds.run(request, object, undefined)))
        await rounds.run(request, object, undefined)
      await inOrder(parts, (plugin) => plugin.validate?.(request, object, undefined))
      await webhooks?.validate(request, object, undefined)
    },
  }
  const tracer = processTracer()
  return tracer === undefined ? admission : traced(admission, tracer)
}

/**
 * The admission with a trace span for each time that a request has to wait in it: for webhooks, and for plugins that
 * look something up.
 */
function traced(admission: Admission, tracer: Tracer): Admission {
  return {
    mutate: (...write) => inSpan(tracer, 'Admission mutate', () => admission.mutate(...write)),
    validate: (...write) => inSpan(tracer, 'Admission validate', () => admission.validate(...write)),
    admitPart: (...write) => inSpan(tracer, 'Admission', () => admission.admitPart(...write)),
  }
}

/** The rounds of both, `first` before `second`; undefined if there are neither. */
function oneAfterTheOther(
  first: MutatingRounds | undefined,
  second: MutatingRounds | undefined,
): MutatingRounds | undefined {
  if (first === undefined || second === undefined) return first ?? second
  return {
    async run(request, object, old) {
      const changed = await first.run(request, object, old)
      return (await second.run(request, object, old)) || changed
    },
  }
}

/**
 * If policies or webhooks change the object, runs the plugins again, and then the policies and webhooks with
 * reinvocationPolicy IfNeeded.
 */
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

/** Runs the plugins in order. Waits only for plugins that return a promise, so the others cost no microtask. */
function inOrder(
  plugins: readonly AdmissionPlugin[],
  run: (plugin: AdmissionPlugin) => void | Promise<void>,
): Promise<void> | undefined {
  let done = 0
  for (const plugin of plugins) {
    done++
    const waiting = run(plugin)
    if (waiting instanceof Promise) return waiting.then(() => inOrder(plugins.slice(done), run))
  }
  return undefined
}
