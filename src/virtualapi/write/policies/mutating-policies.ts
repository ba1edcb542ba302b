// Runs MutatingAdmissionPolicies one after the other; each gets the object with the changes of the policies before it.
// After a policy has mutated the object, the plugins run again, and then the policies with reinvocationPolicy IfNeeded.
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import {
  LateRounds,
  type AdmissionRequest,
  type MutatingAdmission,
  type MutatingRounds,
} from '#virtualapi/write/admission/admission.ts'
import { boundedAuthorizer, providerOf, type Provider } from '#virtualapi/write/admission/provider-admission.ts'
import type { ReviewedForm } from '#virtualapi/write/admission/reviewed-form.ts'
import { type Shown, shownForMutation } from '#virtualapi/write/admission/shown.ts'
import { JsonRoom } from '#apimachinery/cel/index.ts'
import { applyMutation, maxJsonBytesOfRequest } from './apply-mutation.ts'
import { withAuthorizer } from './ask-authorizer.ts'
import { collectParams, paramDefinition } from './collect-params.ts'
import type { CompiledMutatingPolicy } from './compile-mutating-policy.ts'
import { isExemptFromPolicies } from './exempt-resources.ts'
import { atPolicy, inheritedPolicies, providedPolicies } from './inherited-policies.ts'
import { chargedTo } from './expression-costs.ts'
import { RequestMatch, type MatchOptions } from './match-request.ts'
import { type BoundPolicy, mutatingIndex } from './policy-index.ts'
import { requestVariables, withAuthorizerVariables } from './policy-input.ts'
import { policyRefusal } from './policy-refusal.ts'
import { PolicyRun } from './policy-run.ts'
import type { PolicyDependencies } from './validating-policies.ts'

/**
 * Writes of the installation itself (syncers, loops) are not mutated, because otherwise the stored object would never
 * match a member's report.
 */
export function mutatingPolicies(dependencies: PolicyDependencies): MutatingAdmission {
  return {
    mutating(request) {
      const { context, operation } = request
      const { cluster } = context
      const own = mutatingIndex.bound(context.objects)
      const { ancestors } = dependencies
      const hasParent = cluster.parent !== undefined && ancestors !== undefined
      if ((own.length === 0 && !hasParent) || operation === 'DELETE' || isExemptFromPolicies(request)) return undefined
      if (context.user.realm.kind === 'installation' || context.admitted === true) return undefined
      if (!hasParent) return new PolicyRounds(dependencies, own)
      // The policies of the top run last: they have the final word.
      const all = () => [...own, ...inheritedPolicies(mutatingIndex, cluster, ancestors)]
      const loading = ancestors.load(cluster.id, request.signal)
      if (loading !== undefined) return new LateRounds(loading.then(() => new PolicyRounds(dependencies, all())))
      const policies = all()
      return policies.length === 0 ? undefined : new PolicyRounds(dependencies, policies)
    },
  }
}

/** The mutating policies that providers bring to the objects of their exports in consumers. */
export function providedMutatingPolicies(dependencies: PolicyDependencies): MutatingAdmission {
  const roundsOf = (provider: Provider | undefined): MutatingRounds | undefined => {
    const policies = provider === undefined ? [] : providedPolicies(mutatingIndex, provider)
    if (provider === undefined || policies.length === 0) return undefined
    const authorizer = boundedAuthorizer(dependencies.authorizer, provider)
    return new PolicyRounds({ ...dependencies, authorizer, ofProvider: true }, policies)
  }
  return {
    mutating(request) {
      const { context, operation } = request
      if (operation === 'DELETE' || context.user.realm.kind === 'installation' || context.admitted === true)
        return undefined
      const provider = providerOf(dependencies.providers, request, 'policies')
      return provider instanceof Promise ? new LateRounds(provider.then(roundsOf)) : roundsOf(provider)
    },
  }
}

/** One policy with one of its bindings and one set of parameters. */
interface Invocation {
  readonly key: string
  readonly name: string
  readonly binding: string
  readonly policy: CompiledMutatingPolicy
  readonly form: ReviewedForm
  readonly params: JsonObject | undefined
}

/** A failure of a policy that fails closed. */
interface Failure {
  readonly message: string
  /** False if the policy or its binding could not be used at all. */
  readonly isInvalid: boolean
}

class PolicyRounds implements MutatingRounds {
  readonly #dependencies: PolicyDependencies & MatchOptions
  readonly #policies: readonly BoundPolicy<CompiledMutatingPolicy>[]
  #round = 0
  #lastOutput: KubeObject | undefined
  /** The keys of policies that ran, and that must run again if the object changes after them. */
  #invoked = new Set<string>()
  readonly #toReinvoke = new Set<string>()
  readonly #room = new JsonRoom(maxJsonBytesOfRequest)

  constructor(
    dependencies: PolicyDependencies & MatchOptions,
    policies: readonly BoundPolicy<CompiledMutatingPolicy>[],
  ) {
    this.#dependencies = dependencies
    this.#policies = policies
  }

  async run(request: AdmissionRequest, object: KubeObject | undefined, old: KubeObject | undefined): Promise<boolean> {
    if (object === undefined) return false
    if (this.#round > 0 && !isDeepStrictEqual(object, this.#lastOutput)) this.#requireReinvocation()
    const match = new RequestMatch(request, { object, old }, this.#dependencies)
    const failures: Failure[] = []
    const invocations: Invocation[] = []
    for (const policy of this.#policies)
      invocations.push(...(await this.#invocations(policy, request, match, failures)))
    const review = { request, object, old, namespace: invocations.length > 0 ? match.namespace : undefined }
    let mutated = false
    for (const invocation of invocations) mutated = (await this.#invoke(invocation, review, failures)) || mutated
    // As upstream, mutations that leave the object unchanged count, too.
    if (mutated) this.#requireReinvocation()
    this.#lastOutput = structuredClone(object)
    this.#round++
    if (failures.length > 0) throw refusal(await shownForMutation(match.own, request, object, old), failures)
    return mutated
  }

  #requireReinvocation(): void {
    for (const key of this.#invoked) this.#toReinvoke.add(key)
    this.#invoked = new Set()
  }

  async #invocations(
    bound: BoundPolicy<CompiledMutatingPolicy>,
    request: AdmissionRequest,
    match: RequestMatch,
    failures: Failure[],
  ): Promise<Invocation[]> {
    const { policy, bindings } = bound
    const name = shownName(bound)
    const form = match.form(policy.match)
    if (form === undefined) return []
    const place = atPolicy(request, bound)
    const fail = (message: string): void => {
      if (!policy.failsOpen) failures.push({ message, isInvalid: false })
    }
    const params = paramDefinition(policy, place, this.#dependencies.catalog)
    if (typeof params === 'string') {
      fail(`policy ${JSON.stringify(name)} denied request: failed to configure policy: ${params}`)
      return []
    }
    const invocations: Invocation[] = []
    for (const binding of bindings) {
      if (binding.match !== undefined && match.form(binding.match) === undefined) continue
      const found = await collectParams(params, binding, place, this.#dependencies.conversions)
      if (typeof found === 'string') fail(`${deniedBy(name, binding.name)}: failed to configure binding: ${found}`)
      else invocations.push(...found.map((param) => invocationOf({ name, binding: binding.name, policy, form }, param)))
    }
    return invocations
  }

  /** Resolves with true if a mutation was applied. */
  async #invoke(invocation: Invocation, review: Review, failures: Failure[]): Promise<boolean> {
    const { policy, key, name, binding } = invocation
    const fail = (error: unknown): void => {
      if (isStatusError(error)) throw error
      const { message } = error as Error
      if (!policy.failsOpen) failures.push({ message: `${deniedBy(name, binding)}: ${message}`, isInvalid: true })
    }
    try {
      if (!(await this.#conditionsHold(invocation, review))) return false
    } catch (error) {
      fail(error)
      return false
    }
    if (this.#round > 0 && !this.#toReinvoke.has(key)) return false
    let [mutated, changed] = [false, false]
    for (const mutation of policy.mutations) {
      try {
        const shown = await shownForMutation(invocation.form, review.request, review.object, review.old)
        const patch = await this.#evaluate(invocation, shown, review, (run) =>
          applyMutation(mutation, run, { shown, catalog: this.#dependencies.catalog, room: this.#room }),
        )
        changed = (await patch(review.object)) || changed
        mutated = true
        // Converting the object for a policy takes time in proportion to its size.
        await review.request.context.turn?.()
      } catch (error) {
        fail(error)
      }
    }
    if (changed) this.#requireReinvocation()
    if (policy.reinvokes) this.#invoked.add(key)
    return mutated
  }

  async #conditionsHold(invocation: Invocation, review: Review): Promise<boolean> {
    if (invocation.policy.conditions.length === 0) return true
    const shown = await shownForMutation(invocation.form, review.request, review.object, review.old)
    return this.#evaluate(invocation, shown, review, (run) => run.conditionsHold())
  }

  async #evaluate<T>(
    { policy, params }: Invocation,
    shown: Shown,
    { request, namespace }: Review,
    evaluate: (run: PolicyRun) => Promise<T>,
  ): Promise<T> {
    const variables = requestVariables(shown, namespace)
    return withAuthorizer(this.#dependencies.authorizer, request, (authorizer) => {
      const shared = withAuthorizerVariables(variables, shown, authorizer)
      const { context } = request
      return evaluate(new PolicyRun(policy, { shared, params, spent: chargedTo(context), turn: context.turn }))
    })
  }
}

/** The name of a policy, with the logical cluster that has it. */
function shownName({ name, from }: BoundPolicy<CompiledMutatingPolicy>): string {
  if (from === undefined) return name
  const origin = from.exportName === undefined ? '' : `APIExport ${from.exportName} of `
  return `${name} of ${origin}logical cluster ${from.cluster.name}`
}

function invocationOf(of: Omit<Invocation, 'key' | 'params'>, params: JsonObject | undefined): Invocation {
  const { namespace = '', name = '' } = (params?.['metadata'] ?? {}) as KubeObject['metadata']
  return { ...of, key: JSON.stringify([of.name, of.binding, namespace, name]), params }
}

interface Review {
  readonly request: AdmissionRequest
  /** The object of the request, which mutations change in place. */
  readonly object: KubeObject
  readonly old: KubeObject | undefined
  readonly namespace: KubeObject | undefined
}

const deniedBy = (policy: string, binding: string): string =>
  `policy '${policy}' with binding '${binding}' denied request`

/**
 * The error for the failures of policies. All failures are its causes; its message and reason are those of the first
 * one. As upstream, the code is 403 whatever the reason is.
 */
function refusal({ request, object }: Shown, failures: readonly Failure[]): Error {
  const [first] = failures
  const reason = first?.isInvalid === true ? 'Invalid' : 'Forbidden'
  const causes = failures.map(({ message }) => message)
  return policyRefusal(request, object, { code: 403, reason, causes, message: causes[0] ?? '' })
}
