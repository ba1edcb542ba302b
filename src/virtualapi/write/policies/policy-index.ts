// The admission policies of a logical cluster with their bindings, as they are stored now.
import type {
  V1beta1MutatingAdmissionPolicySpec,
  V1ParamRef,
  V1MatchResources,
  V1ValidatingAdmissionPolicySpec,
} from '@kubernetes/client-node'
import { inheritLabel } from '#crds/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { compileMutatingPolicy, type CompiledMutatingPolicy } from './compile-mutating-policy.ts'
import { compilePolicy, type CompiledPolicy } from './compile-policy.ts'
import { compileMatch, type ResourceMatch } from './match-resources.ts'

export interface Binding {
  readonly name: string
  readonly spec: BindingSpec
  /** The rules of the binding; undefined if it does not narrow the rules of the policy. */
  readonly match: ResourceMatch | undefined
  /** True if the binding holds in descendants, too. */
  readonly inherits: boolean
}

interface BindingSpec {
  readonly policyName: string
  readonly paramRef?: Data<V1ParamRef>
  readonly matchResources?: Data<V1MatchResources>
  /** Only in a ValidatingAdmissionPolicyBinding. */
  readonly validationActions?: readonly string[]
}

export interface BoundPolicy<P> {
  readonly name: string
  readonly policy: P
  readonly bindings: readonly Binding[]
  /** The logical cluster that has the policy; absent for a policy of the logical cluster itself. */
  readonly from?: PolicyOrigin
}

/** An ancestor, or the provider of an export. */
export interface PolicyOrigin {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  /** The export of a provider; absent for an ancestor. */
  readonly exportName?: string
}

interface Index<P> {
  readonly changes: readonly [number, number]
  readonly policies: readonly BoundPolicy<P>[]
}

const compiledBindings = new WeakMap<Entry, Binding>()

/** The policies of one kind with their bindings. */
export class PolicyIndex<P> {
  readonly #policyKey: string
  readonly #bindingKey: string
  readonly #compile: (spec: unknown) => P
  readonly #indexes = new WeakMap<ClusterObjects, Index<P>>()
  readonly #inheritable = new WeakMap<readonly BoundPolicy<P>[], readonly BoundPolicy<P>[]>()
  readonly #compiled = new WeakMap<Entry, { readonly policy: P }>()

  constructor({ prefix, compile }: { prefix: string; compile: (spec: unknown) => P }) {
    this.#policyKey = `${prefix}admissionpolicies.admissionregistration.k8s.io`
    this.#bindingKey = `${prefix}admissionpolicybindings.admissionregistration.k8s.io`
    this.#compile = compile
  }

  /**
   * The policies that have a binding, in the order of names. The list is computed again after a policy or a binding has
   * changed.
   */
  bound(objects: ClusterObjects): readonly BoundPolicy<P>[] {
    const changes = [objects.changes(this.#policyKey), objects.changes(this.#bindingKey)] as const
    const known = this.#indexes.get(objects)
    if (known?.changes[0] === changes[0] && known.changes[1] === changes[1]) return known.policies
    const policies = this.#read(objects)
    this.#indexes.set(objects, { changes, policies })
    return policies
  }

  /** The policies whose bindings hold in descendants, with only these bindings. */
  inheritable(objects: ClusterObjects): readonly BoundPolicy<P>[] {
    const all = this.bound(objects)
    let found = this.#inheritable.get(all)
    if (found === undefined) {
      found = all.flatMap((policy) => {
        const bindings = policy.bindings.filter(({ inherits }) => inherits)
        return bindings.length === 0 ? [] : [{ ...policy, bindings }]
      })
      this.#inheritable.set(all, found)
    }
    return found
  }

  #read(objects: ClusterObjects): readonly BoundPolicy<P>[] {
    const entries = objects.list({ resource: this.#policyKey })
    if (entries.length === 0) return []
    const all = objects.list({ resource: this.#bindingKey }).map(bindingOf)
    const bindings = Map.groupBy(all, ({ spec }) => spec.policyName)
    return entries.flatMap((entry) => {
      const { name } = entry.key
      const own = bindings.get(name)
      return own === undefined ? [] : [{ name, policy: this.#policyOf(entry), bindings: own }]
    })
  }

  #policyOf(entry: Entry): P {
    let known = this.#compiled.get(entry)
    if (known === undefined) {
      known = { policy: this.#compile(decodeObject(entry.bytes)['spec']) }
      this.#compiled.set(entry, known)
    }
    return known.policy
  }
}

function bindingOf(entry: Entry): Binding {
  let binding = compiledBindings.get(entry)
  if (binding === undefined) {
    const spec = decodeObject(entry.bytes)['spec'] as BindingSpec
    const { matchResources } = spec
    const inherits = entry.facts.labels?.[inheritLabel] === 'true'
    binding = { name: entry.key.name, spec, match: matchResources && compileMatch(matchResources), inherits }
    compiledBindings.set(entry, binding)
  }
  return binding
}

export const validatingIndex: Pick<PolicyIndex<CompiledPolicy>, 'bound' | 'inheritable'> = new PolicyIndex({
  prefix: 'validating',
  compile: (spec) => compilePolicy(spec as Data<V1ValidatingAdmissionPolicySpec>),
})

export const mutatingIndex: Pick<PolicyIndex<CompiledMutatingPolicy>, 'bound' | 'inheritable'> = new PolicyIndex({
  prefix: 'mutating',
  compile: (spec) => compileMutatingPolicy(spec as Data<V1beta1MutatingAdmissionPolicySpec>),
})
