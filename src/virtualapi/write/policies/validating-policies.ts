// ValidatingAdmissionPolicy as an admission plugin: runs the policies whose bindings match a request.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Value } from '#apimachinery/cel/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { FormDependencies, ReviewedForm } from '#virtualapi/write/admission/reviewed-form.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import {
  boundedAuthorizer,
  providerOf,
  type Provider,
  type Providers,
} from '#virtualapi/write/admission/provider-admission.ts'
import type { Authorizer } from '#virtualapi/auth/authz/index.ts'
import type { Ancestors } from '#virtualapi/hierarchy/ancestors.ts'
import { withAuthorizer } from './ask-authorizer.ts'
import { collectParams, paramDefinition } from './collect-params.ts'
import type { CompiledPolicy } from './compile-policy.ts'
import { type Denial, evaluatePolicy, type Verdict, type AuditAnnotation } from './evaluate-policy.ts'
import { isExemptFromPolicies } from './exempt-resources.ts'
import { atPolicy, inheritedPolicies, policyText, providedPolicies } from './inherited-policies.ts'
import { chargedTo } from './expression-costs.ts'
import { RequestMatch, type MatchOptions, type ReviewedObjects } from './match-request.ts'
import { type Binding, type BoundPolicy, validatingIndex } from './policy-index.ts'
import { requestVariables, withAuthorizerVariables } from './policy-input.ts'
import { policyRefusal } from './policy-refusal.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'

export interface PolicyDependencies extends FormDependencies {
  readonly authorizer: Pick<Authorizer, 'authorize'>
  /** The ancestors whose policies act below; absent: no logical cluster has any. */
  readonly ancestors?: Ancestors | undefined
  /** The providers whose policies act in consumers; absent: none do. */
  readonly providers?: Providers | undefined
}

const codes: Readonly<Record<string, number>> = { Forbidden: 403, Unauthorized: 401, RequestEntityTooLarge: 413 }

export function validatingPolicies(dependencies: PolicyDependencies): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionPolicy',
    validatesParts: true,
    validate(request, object, old) {
      const { objects, cluster, admitted } = request.context
      const own = validatingIndex.bound(objects)
      const { ancestors } = dependencies
      const hasParent = cluster.parent !== undefined && ancestors !== undefined
      // Writes that follow an admitted subresource request, such as the binding of a pod, are not admitted again.
      if ((own.length === 0 && !hasParent) || isExemptFromPolicies(request) || admitted === true) return undefined
      const run = (policies: readonly BoundPolicy<CompiledPolicy>[]): Promise<void> | undefined =>
        policies.length === 0 ? undefined : new Review(dependencies, request, { object, old }).run(policies)
      if (!hasParent) return run(own)
      const all = () => run([...own, ...inheritedPolicies(validatingIndex, cluster, ancestors)])
      return ancestors.load(cluster.id, request.signal)?.then(all) ?? all()
    },
  }
}

/**
 * The validating policies that providers bring to the objects of their exports in consumers. Writes of the installation
 * itself are left alone: a provider must not hold up what ends a binding or a namespace of a consumer.
 */
export function providedValidatingPolicies(dependencies: PolicyDependencies): AdmissionPlugin {
  const review = (provider: Provider | undefined, request: AdmissionRequest, objects: ReviewedObjects) => {
    const policies = provider === undefined ? [] : providedPolicies(validatingIndex, provider)
    if (provider === undefined || policies.length === 0) return undefined
    const authorizer = boundedAuthorizer(dependencies.authorizer, provider)
    return new Review({ ...dependencies, authorizer, ofProvider: true }, request, objects).run(policies)
  }
  return {
    name: 'ProvidedValidatingAdmissionPolicy',
    validate(request, object, old) {
      const { user, admitted } = request.context
      if (user.realm.kind === 'installation' || admitted === true) return undefined
      const provider = providerOf(dependencies.providers, request, 'policies')
      if (provider instanceof Promise) return provider.then((found) => review(found, request, { object, old }))
      return review(provider, request, { object, old })
    },
  }
}

interface Refusal extends Denial {
  readonly policy: string
  readonly binding: string | undefined
}

interface Seen {
  readonly shown: Shown
  readonly variables: ReadonlyMap<string, Value>
}

class Review {
  readonly #dependencies: PolicyDependencies & MatchOptions
  readonly #request: AdmissionRequest
  readonly #objects: ReviewedObjects
  readonly #match: RequestMatch
  readonly #seen = new Map<ReviewedForm, Promise<Seen>>()

  constructor(dependencies: PolicyDependencies & MatchOptions, request: AdmissionRequest, objects: ReviewedObjects) {
    this.#dependencies = dependencies
    this.#request = request
    this.#objects = objects
    this.#match = new RequestMatch(request, objects, dependencies)
  }

  /** Rejects with the first denial. Returns undefined if no policy matches. */
  run(policies: readonly BoundPolicy<CompiledPolicy>[]): Promise<void> | undefined {
    const matched = policies.flatMap((policy) => {
      const form = this.#match.form(policy.policy.match)
      return form === undefined ? [] : [{ policy, form }]
    })
    return matched.length === 0 ? undefined : this.#decide(matched)
  }

  async #decide(matched: readonly { policy: BoundPolicy<CompiledPolicy>; form: ReviewedForm }[]): Promise<void> {
    const refusals: Refusal[] = []
    for (const { policy, form } of matched) refusals.push(...(await this.#policy(policy, form)))
    const [first] = refusals
    if (first !== undefined) throw this.#error(first)
  }

  async #policy(bound: BoundPolicy<CompiledPolicy>, form: ReviewedForm): Promise<Refusal[]> {
    const { name, policy, bindings } = bound
    const shownName = policyText(bound)
    const failed = (message: string, binding?: string): Refusal[] =>
      policy.failsOpen ? [] : [{ policy: shownName, binding, message, reason: 'Invalid', index: 0 }]
    const place = atPolicy(this.#request, bound)
    const params = paramDefinition(policy, place, this.#dependencies.catalog)
    if (typeof params === 'string') return failed(`failed to configure policy: ${params}`)
    const refusals: Refusal[] = []
    const annotations = new AuditAnnotations(name)
    for (const binding of bindings) {
      if (binding.match !== undefined && this.#match.form(binding.match) === undefined) continue
      const found = await collectParams(params, binding, place, this.#dependencies.conversions)
      if (typeof found === 'string') {
        refusals.push(...failed(`failed to configure binding: ${found}`, binding.name))
        continue
      }
      for (const param of found) {
        const verdict = await this.#evaluate(policy, form, param)
        for (const annotation of verdict.annotations) annotations.add(annotation)
        refusals.push(...this.#refusals(verdict, shownName, binding))
      }
    }
    annotations.publish(this.#request.context)
    return refusals
  }

  async #evaluate(policy: CompiledPolicy, form: ReviewedForm, params: JsonObject | undefined): Promise<Verdict> {
    const { shown, variables } = await this.#see(form)
    const { context } = this.#request
    return withAuthorizer(this.#dependencies.authorizer, this.#request, (authorizer) =>
      evaluatePolicy(policy, {
        shared: withAuthorizerVariables(variables, shown, authorizer),
        params,
        spent: chargedTo(context),
        turn: context.turn,
      }),
    )
  }

  #see(form: ReviewedForm): Promise<Seen> {
    let seen = this.#seen.get(form)
    if (seen === undefined) {
      seen = this.#show(form)
      this.#seen.set(form, seen)
    }
    return seen
  }

  async #show(form: ReviewedForm): Promise<Seen> {
    const { object, old } = this.#objects
    const shown: Shown = {
      request: this.#request,
      own: this.#match.own,
      form,
      object: object && (await form.show(object)),
      old: old && (await form.show(old)),
    }
    return { shown, variables: requestVariables(shown, this.#match.namespace) }
  }

  #refusals({ denials, annotationErrors }: Verdict, policy: string, binding: Binding): Refusal[] {
    const refused = denials.flatMap((denial) => this.#act(denial, policy, binding))
    return [...refused, ...annotationErrors.map((denial) => ({ ...denial, policy, binding: binding.name }))]
  }

  #act(denial: Denial, policy: string, { name, spec }: Binding): Refusal[] {
    const { context } = this.#request
    const refusals: Refusal[] = []
    const actions = spec.validationActions ?? []
    for (const action of actions) {
      if (action === 'Deny') refusals.push({ ...denial, policy, binding: name })
      else if (action === 'Audit') {
        const { key, value } = validationFailure(denial, { policy: spec.policyName, binding: name, actions })
        context.annotate?.(key, value)
      } else if (action === 'Warn') {
        const head = `Validation failed for ValidatingAdmissionPolicy ${policy} with binding '${name}'`
        context.warnings.push(`${head}: ${denial.message}`)
      }
    }
    return refusals
  }

  #error({ policy, binding, message, reason }: Refusal): Error {
    const by = binding === undefined ? '' : ` with binding '${binding}'`
    const text = `ValidatingAdmissionPolicy ${policy}${by} denied request: ${message}`
    const refusal = { code: codes[reason] ?? 422, reason, causes: [text] }
    return policyRefusal(this.#request, this.#objects.object, refusal)
  }
}

const maxValueBytes = 10 * 1024

/** The audit annotations of one policy: its bindings and their parameters may produce several values for one key. */
class AuditAnnotations {
  readonly #policy: string
  readonly #values = new Map<string, Set<string>>()

  constructor(policy: string) {
    this.#policy = policy
  }

  add({ key, value }: AuditAnnotation): void {
    const values = this.#values.get(key) ?? new Set<string>()
    this.#values.set(key, values.add(atMost(maxValueBytes, value)))
  }

  publish({ annotate }: RequestContext): void {
    for (const [key, values] of this.#values) annotate?.(`${this.#policy}/${key}`, [...values].join(', '))
  }
}

/** The text, cut to a number of bytes. */
function atMost(bytes: number, text: string): string {
  const encoded = Buffer.from(text)
  return encoded.length <= bytes ? text : encoded.subarray(0, bytes).toString()
}

/** The annotation of a validation that failed under the action Audit. */
function validationFailure(
  { message, index }: Denial,
  { policy, binding, actions }: { policy: string; binding: string; actions: readonly string[] },
): { readonly key: string; readonly value: string } {
  const failure = { message, policy, binding, expressionIndex: index, validationActions: actions }
  return { key: 'validation.policy.admission.k8s.io/validation_failure', value: JSON.stringify([failure]) }
}
